#include "hstu/columns/sequence_survey.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <string_view>

#include "hstu/base/contains.h"
#include "hstu/base/error.h"
#include "hstu/base/text.h"
#include "hstu/columns/field_reader.h"
#include "hstu/columns/file_format.h"
#include "hstu/columns/sequence_source.h"

namespace hstu {
namespace {

constexpr std::size_t kRowFields = 3;

// The fields at one place of the lines: users, items, times or items, further items.
struct Ids {
  std::int64_t plain = 0, first_line = 0, others = 0;  // others: not plain; those of first lines, of the rest
  std::string example;                                 // of one that is not plain, with its place

  void add(const Path& file, const LineField& field, bool first) {
    if (plain_id(field.text)) {
      ++plain;
      return;
    }
    ++(first ? first_line : others);
    if (example.empty() || (others == 1 && !first))
      example = fmt::format("{} is \"{}\"", place_of(file, field), shown_value(field.text));
  }
  bool looks_named() const { return plain > 0 && first_line > 0 && others == 0; }
};

// Words that begin the header of a log.
bool is_name_of_users(std::string_view text) {
  constexpr std::array<std::string_view, 8> kNames{"user",     "userid",     "uid",       "session",
                                                   "customer", "customerid", "sessionid", "visitorid"};
  std::string plain;
  for (const char c : text)
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return contains(kNames, plain);
}

struct LineLength {
  std::int64_t fields = 0;
  std::string place;  // the first line that has it
};

class Survey {
 public:
  Survey(char delimiter, bool header) : delimiter_(delimiter), header_(header) {}

  void read(const Path& file) {
    FieldReader reader(file, delimiter_, header_);
    LineField field;
    std::int64_t first_line = 0, line = 0, fields = 0;
    while (reader.next(field)) {
      if (delimiter_ != ' ' && field.text.front() == '"')
        fail_usage(
            "{}: a field begins with a quote, which is an ordinary character here: hstu prepare csv reads "
            "quotes, with a schema: {}",
            place_of(file, field), shown_value(field.text));
      if (first_line == 0) first_line = field.line;
      if (field.line != line && line != 0) end_line(file, line, fields);
      line = field.line;
      fields = field.number;
      const auto place = std::min<std::size_t>(static_cast<std::size_t>(field.number), ids_.size()) - 1;
      ids_[place].add(file, field, line == first_line);
      if (line == first_line && field.number == 1 && is_name_of_users(field.text) && named_.empty())
        named_ = fmt::format("{} is \"{}\"", place_of(file, field), shown_value(field.text));
    }
    if (line == 0) fail("{}: the file has no lines: expected a user and an item", file.string());
    end_line(file, line, fields);
  }

  // Of `place` from 0: users, items, times or second items, all further items.
  const Ids& ids(std::size_t place) const { return ids_[place]; }
  const LineLength& shortest() const { return shortest_; }
  const LineLength& longest() const { return longest_; }
  const std::string& named() const { return named_; }

 private:
  void end_line(const Path& file, std::int64_t line, std::int64_t fields) {
    const auto place = [&] { return fmt::format("{}: line {}", file.string(), line); };
    if (shortest_.fields == 0 || fields < shortest_.fields) shortest_ = {fields, place()};
    if (fields > longest_.fields) longest_ = {fields, place()};
  }

  char delimiter_;
  bool header_;
  std::array<Ids, kRowFields + 1> ids_;
  LineLength shortest_, longest_;
  std::string named_;
};

// The first line that is not blank, or its beginning.
std::string first_line(const Path& file) {
  constexpr std::size_t kMost = 1 << 16;
  FieldReader reader(file, '\n', false);  // no line contains it: fields are whole lines
  LineField line;
  try {
    if (!reader.next(line)) return "";
  } catch (const Error&) {  // longer than a field may be
  }
  return line.text.substr(0, kMost);
}

char find_delimiter(const Path& file) {
  const std::string line = first_line(file);
  std::string found;
  if (line.find('\t') != std::string::npos) found += '\t';
  if (line.find(',') != std::string::npos) found += ',';
  for (std::size_t at = line.find(' '); at != std::string::npos; at = line.find(' ', at + 1)) {
    const auto is_edge = [&](char c) { return c == ',' || c == '\t' || c == ' '; };
    const bool edge = at == 0 || at + 1 == line.size() || is_edge(line[at - 1]) || is_edge(line[at + 1]);
    if (edge && !found.empty()) continue;
    found += ' ';
    break;
  }
  if (found.size() > 1) {
    fail_usage(
        "{}: line 1: tabs, commas or blanks occur together, and only one of them separates fields: say which "
        "(--delimiter tab, comma or blank): \"{}\"",
        file.string(), shown_value(line));
  }
  return found.empty() || found == " " ? ' ' : found.front();
}

void check_format(const Path& file) {
  check_input_file(file);
  check(!std::filesystem::is_empty(file), "{}: the file has no lines: expected a user and an item",
        file.string());
  if (format_of(file) == FileFormat::kParquet)
    fail_usage(
        "{}: it is no text: expected lines of ids; Parquet needs a schema (hstu prepare parquet --suggest "
        "{})",
        file.string(), file.string());
}

SequenceLayout find_layout(const SequenceQuestions& questions, const Survey& survey) {
  const LineLength &shortest = survey.shortest(), &longest = survey.longest();
  const auto most = static_cast<std::int64_t>(kRowFields);
  if (questions.layout) {
    if (*questions.layout == SequenceLayout::kLines) return SequenceLayout::kLines;
    if (!questions.times.empty())
      fail_usage("--times is for lines of a user and its items (--layout lines); rows have their own times");
    if (longest.fields > most || shortest.fields != longest.fields || shortest.fields < 2) {
      const bool few = longest.fields <= most && longest.fields >= 2;
      fail_usage("{}: expected {} fields (user, item{}), found {}", few ? shortest.place : longest.place,
                 few ? std::to_string(longest.fields) : "2 or 3", few && longest.fields == 2 ? "" : ", time",
                 few ? shortest.fields : longest.fields);
    }
    return SequenceLayout::kRows;
  }
  if (longest.fields > most || !questions.times.empty()) return SequenceLayout::kLines;
  if (longest.fields == 1)
    fail_usage(
        "{}: expected a user and an item, found one field: say what separates fields (--delimiter tab, comma "
        "or blank); MovieLens' files are known by their names (ratings.dat)",
        longest.place);
  if (shortest.fields != longest.fields)
    fail_usage(
        "{} has {} fields, and {} has {}: are they a user and its items (--layout lines), or a user, an item "
        "and a time (--layout rows)?",
        shortest.place, shortest.fields, longest.place, longest.fields);
  return SequenceLayout::kRows;
}

void check_no_header(const Survey& survey, bool timed_rows) {
  std::string place = survey.named();
  for (std::size_t f = 0; f < 2; ++f)
    if (place.empty() && survey.ids(f).looks_named()) place = survey.ids(f).example;
  if (place.empty() && timed_rows && survey.ids(2).looks_named()) place = survey.ids(2).example;
  if (place.empty()) return;
  fail_usage(
      "{}, as in a header: --header leaves out the first line of every file; for a user of that name, "
      "--no-header",
      place);
}

void note_texts(const char* kind, const Ids& ids, std::vector<std::string>& notes) {
  notes.push_back(fmt::format("{} ids are texts{}", kind,
                              ids.example.empty() ? "" : fmt::format(", because {}", ids.example)));
}

}  // namespace

SequenceAnswer survey_sequences(const SequenceQuestions& questions) {
  SequenceAnswer answer;
  SequenceFormat& format = answer.format;
  for (const auto* files : {&questions.files, &questions.times})
    for (const Path& file : *files) check_format(file);
  format.delimiter = questions.delimiter.value_or('\0');
  if (!questions.delimiter) format.delimiter = find_delimiter(questions.files.front());
  format.header = questions.header == HeaderLine::kSkipped;
  Survey survey(format.delimiter, format.header);
  for (const Path& file : questions.files) survey.read(file);
  format.layout = find_layout(questions, survey);
  const bool rows = format.layout == SequenceLayout::kRows;
  format.timed =
      rows ? survey.longest().fields == static_cast<std::int64_t>(kRowFields) : !questions.times.empty();
  if (questions.header == HeaderLine::kFind) check_no_header(survey, rows && format.timed);
  for (std::size_t f = 0; f < questions.times.size(); ++f)
    format.times_of.emplace(questions.files[f], questions.times[f]);

  const auto has_texts = [&](std::size_t place) {
    return survey.ids(place).first_line + survey.ids(place).others > 0;
  };
  std::size_t items = 1;  // a place that has an item that is no number, if there is one
  for (std::size_t place = 2; !rows && place <= kRowFields; ++place)
    if (!has_texts(items)) items = place;
  format.user_texts = questions.user_texts.value_or(has_texts(0));
  format.item_texts = questions.item_texts.value_or(has_texts(items));
  answer.notes.push_back(rows ? fmt::format("lines are rows of user, item{}", format.timed ? ", time" : "")
                              : "lines are users with their items, the oldest first");
  if (format.user_texts && !questions.user_texts) note_texts("user", survey.ids(0), answer.notes);
  if (format.item_texts && !questions.item_texts) note_texts("item", survey.ids(items), answer.notes);
  return answer;
}

}  // namespace hstu
