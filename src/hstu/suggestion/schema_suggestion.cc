#include "hstu/suggestion/schema_suggestion.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <set>
#include <string_view>

#include "hstu/base/contains.h"
#include "hstu/base/error.h"
#include "hstu/base/text.h"
#include "hstu/base/text_form.h"
#include "hstu/columns/csv_source.h"
#include "hstu/columns/file_columns.h"
#include "hstu/columns/file_format.h"
#include "hstu/columns/folder_columns.h"
#include "hstu/columns/null_words.h"
#include "hstu/suggestion/column_guess.h"

namespace hstu {
namespace {

// A TOML string.
std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F) {
      result += fmt::format("\\u{:04X}", byte);
    } else {
      if (c == '"' || c == '\\') result += '\\';
      result += c;
    }
  }
  return result + "\"";
}

std::string quoted_list(const std::vector<std::string>& texts) {
  std::vector<std::string> parts;
  parts.reserve(texts.size());
  for (const std::string& text : texts) parts.push_back(quoted(text));
  return fmt::format("[{}]", fmt::join(parts, ", "));
}

// The text of a comment: values of columns may contain line ends.
std::string one_line(std::string text) {
  for (char& c : text) {
    if (std::iscntrl(static_cast<unsigned char>(c)) != 0) c = ' ';
  }
  return text;
}

// The folder that contains all files.
Path common_folder(const std::vector<Path>& files) {
  Path folder = std::filesystem::absolute(files.front()).lexically_normal().parent_path();
  for (const Path& file : files) {
    const Path other = std::filesystem::absolute(file).lexically_normal().parent_path();
    const auto end = std::mismatch(folder.begin(), folder.end(), other.begin(), other.end()).first;
    Path common;
    for (auto part = folder.begin(); part != end; ++part) common /= *part;
    folder = common;
  }
  return folder;
}

// "day=2024-05-01/part-0.parquet": "day=*/part-0.parquet".
std::string without_values(const Path& file) {
  Path pattern;
  for (const Path& part : file.parent_path()) {
    const std::string name = part.string();
    const std::size_t at = name.find('=');
    pattern /= at == std::string::npos || at == 0 ? part : Path(name.substr(0, at) + "=*");
  }
  return pattern / file.filename();
}

// The columns that every file has and that can be read.
std::vector<std::string> common_columns(const std::vector<Path>& files, const CsvFormat& format,
                                        std::vector<std::string>& remarks) {
  std::vector<std::string> names;
  for (std::size_t f = 0; f < files.size(); ++f) {
    std::vector<std::string> found;
    for (const FileColumn& column : list_columns(files[f], format)) {
      if (column.readable) {
        found.push_back(column.name);
      } else if (f == 0) {
        remarks.push_back(fmt::format("{}: {}, which hstu {}", column.name, column.type_name,
                                      column.bytes ? "reads as texts if they are UTF-8" : "does not read"));
      }
    }
    if (f == 0) names = found;
    std::erase_if(names, [&](const std::string& name) {
      const bool everywhere = contains(found, name);
      if (!everywhere)
        remarks.push_back(fmt::format("{}: missing in {}", name, files[f].filename().string()));
      return !everywhere;
    });
  }
  return names;
}

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

std::string describe(const ColumnSummary& column) {
  const std::string nulls = column.nulls > 0 ? fmt::format(", {} nulls", with_separators(column.nulls)) : "";
  const std::vector<std::string_view> texts(column.texts.begin(), column.texts.end());
  constexpr std::int64_t kManyNumbers = 20;
  const bool many =
      column.type_name == "number" && !column.whole && column.distinct >= kManyNumbers;  // of CSV
  const std::string unlike = many ? "numbers with fractions" : unlike_categories(texts);
  return fmt::format("{}, {} ({} distinct{}){}", column.type_name, column.text(),
                     with_separators(column.distinct), nulls,
                     unlike.empty() ? "" : fmt::format(": {}, each of which would be one category", unlike));
}

bool is_csv(const Path& file) {
  return format_of(file) != FileFormat::kParquet;
}

// The names of a header, whatever quotes mean in the rows below it.
std::vector<std::string> header_of(const Path& file) {
  try {
    return list_csv_columns(file, {});
  } catch (const UsageError&) {
    throw;
  } catch (const Error&) {
    return list_csv_columns(file, {.quote = {}});
  }
}

// The delimiter of a header that commas do not separate; 0: there is none.
char guess_delimiter(const Path& file) {
  const std::vector<std::string> names = header_of(file);
  if (names.size() != 1) return '\0';
  const std::size_t at = names.front().find_first_of("\t;|");
  return at == std::string::npos ? '\0' : names.front()[at];
}

class Suggestion {
 public:
  explicit Suggestion(const std::vector<Path>& files)
      : files_(files), folder_(common_folder(files)), csv_(is_csv(files.front())) {
    if (csv_) options_.csv->delimiter = guess_delimiter(files.front());
    try {
      look();
    } catch (const UsageError&) {
      throw;
    } catch (const Error&) {  // stray quotes, or a file that is damaged indeed
      if (!csv_) throw;
      options_.csv->quote = std::nullopt;
      look();
    }
    if (columns_.empty()) fail_usage("{}: the file contains no rows to guess from", files.front().string());
  }

  std::string text() {
    const auto user = guess_user(columns_);
    const auto item = guess_item(columns_, user.value_or(GuessedColumn()));
    const auto time = guess_time(columns_);
    for (const GuessedColumn* found : {user ? &*user : nullptr, item ? &*item : nullptr,
                                       time ? static_cast<const GuessedColumn*>(&*time) : nullptr}) {
      if (found != nullptr) used_.push_back(found->column);
    }
    const GuessedActions actions = guess_actions(columns_, used_);
    write_head();
    write_csv();
    write_id("user", user);
    write_id("item", item);
    write_time(time);
    if (time) time_ = time->column->name;
    if (csv_) write_integers();
    if (item && item->column->kind == RawColumn::Kind::kText)
      line("keep_names = [\"item\"]  # results name items by these texts, in place of their hashes\n");
    used_.insert(used_.end(), actions.columns.begin(), actions.columns.end());
    write_label(actions);
    write_nulls(actions);
    for (const ActionRule& action : actions.actions) write_action(action);
    write_rest();
    return text_;
  }

 private:
  void line(const std::string& text) { text_ += text + "\n"; }

  void write_head() {
    line(fmt::format("# Guessed from the first {} rows of {}. Read every line and correct it, then run:",
                     with_separators(columns_.front().rows), one_line(files_.front().filename().string())));
    line(fmt::format("#   hstu prepare parquet --schema THIS_FILE --input {} --output DATASET",
                     one_line(folder_.string())));
    line("# docs/prepare.md explains every key.");
    line("name = \"log\"");
    std::vector<std::string> names;
    for (const Path& file : files_) {
      std::string name =
          without_values(std::filesystem::absolute(file).lexically_normal().lexically_relative(folder_));
      if (!contains(names, name)) names.push_back(std::move(name));
    }
    line(fmt::format("files = {}  # patterns are allowed: \"events-*.parquet\"", quoted_list(names)));
    line("");
  }

  // Reads the columns' names and the first rows; once more if texts among them are words for null.
  void look() {
    remarks_.clear();
    const std::vector<std::string> names = common_columns(files_, *options_.csv, remarks_);
    columns_ = summarize_columns(files_.front(), names, options_);
    std::set<std::string> nulls;
    for (const ColumnSummary& column : columns_)
      std::copy_if(column.texts.begin(), column.texts.end(), std::inserter(nulls, nulls.end()), is_null_word);
    if (nulls.empty()) return;
    options_.nulls.assign(nulls.begin(), nulls.end());
    columns_ = summarize_columns(files_.front(), names, options_);
  }

  void write_csv() {
    const CsvFormat& csv = *options_.csv;
    if (csv.delimiter != '\0') line("delimiter = " + quoted(std::string(1, csv.delimiter)));
    if (!csv.quote) line("quote = \"\"  # quotes are part of the texts: they do not begin and end fields");
    if (!options_.nulls.empty())
      line(fmt::format("nulls = {}  # texts that mean null", quoted_list(options_.nulls)));
  }

  void write_id(const char* role, const std::optional<GuessedColumn>& guess) {
    if (!guess) {
      line(fmt::format("# NO COLUMN LOOKS LIKE THE {}: write its name here.", upper(role)));
      line(fmt::format("{} = \"\"", role));
      if (std::string_view(role) == "item")
        line(
            "# Lines of ids alone, without names of columns, are read by `hstu prepare sequences` without a "
            "schema.");
      return;
    }
    line(fmt::format("# {}: {}", guess->reason, one_line(describe(*guess->column))));
    line(fmt::format("{} = {}", role, quoted(guess->column->name)));
  }

  void write_time(const std::optional<GuessedTime>& time) {
    write_id("time", time);
    if (!time) {
      line(
          "# Times are timestamps, numbers (time_unit = \"s\", \"ms\", \"us\" or \"ns\") or texts in ISO "
          "8601.");
      line(
          "# If the rows of each user are in their order, and there are no times: times = \"order\" "
          "instead.");
    } else {
      if (time->column->kind != RawColumn::Kind::kSeconds)
        line(fmt::format("time_unit = \"{}\"", time->unit));
      if (time->relative) line("relative_time = true  # the times do not count from 1970");
    }
    line("");
  }

  // Ids of CSV files are texts unless the schema says otherwise.
  void write_integers() {
    std::vector<std::string> columns;
    for (const ColumnSummary* id : used_) {  // the user, the item and the time, which is read without the key
      if (id->kind == RawColumn::Kind::kInteger && id->name != time_) columns.push_back(id->name);
    }
    if (columns.empty()) return;
    line(fmt::format("integers = {}  # columns of the CSV files that hold integers; others hold texts",
                     quoted_list(columns)));
    line("");
  }

  void write_label(const GuessedActions& actions) {
    std::vector<std::string> pools;
    pools.reserve(actions.actions.size());
    for (const ActionRule& action : actions.actions) pools.push_back(action.name);
    line("# Actions: " + one_line(actions.reason) + ".");
    line(fmt::format("label = {}  # what to predict: a rankable event with this action is a positive",
                     quoted(actions.label)));
    line(fmt::format("pools = {}  # actions whose events form a user's history", quoted_list(pools)));
    line("# rankable = [\"column = value\"]  # the events to predict; without it every event");
  }

  void write_nulls(const GuessedActions& actions) {
    std::vector<std::string> columns;
    for (const ColumnSummary* column : actions.columns) {
      if (column->nulls > 0) columns.push_back(column->name);
    }
    if (!columns.empty()) line(fmt::format("null_as_zero = {}", quoted_list(columns)));
    columns.clear();
    for (const ColumnSummary* column : used_) {
      const bool action = contains(actions.columns, column);
      if (column->nulls > 0 && !action) columns.push_back(column->name);
    }
    if (!columns.empty())
      line(fmt::format("drop_null = {}  # rows without a value are left out", quoted_list(columns)));
  }

  void write_action(const ActionRule& action) {
    std::vector<std::string> when;
    when.reserve(action.when.size());
    for (const Condition& condition : action.when) when.push_back(to_string(condition));
    line("");
    line("[[action]]");
    line("name = " + quoted(action.name));
    line(fmt::format("bit = {}", action.bit));
    line("when = " + quoted_list(when));
  }

  // The columns without a role, and how to give them one.
  void write_rest() {
    line("");
    line(
        "# Other columns. A property of the item can be an [[attribute]], a property of the situation a "
        "[[context]]:");
    line("#   [[context]]");
    line("#   name = \"device\"");
    line("#   column = \"device_id\"");
    for (const ColumnSummary& column : columns_) {
      const bool used = contains(used_, &column);
      if (!used) line("# " + one_line(fmt::format("{}: {}", column.name, describe(column))));
    }
    for (const std::string& remark : remarks_) line("# " + one_line(remark));
    for (const auto& [name, value] : folder_values(files_.front()))
      line("# " + one_line(fmt::format("{}: folders, {} in the first: a column of texts, or of integers with "
                                       "integers = [{}]",
                                       name, value.value_or("null"), quoted(name))));
  }

  const std::vector<Path>& files_;
  Path folder_;
  bool csv_;
  ReadOptions options_{.csv = CsvFormat()};
  std::string time_;                  // the column of times
  std::vector<std::string> remarks_;  // on columns that cannot be used
  std::vector<ColumnSummary> columns_;
  std::vector<const ColumnSummary*> used_;
  std::string text_;
};

}  // namespace

std::string suggest_schema(const std::vector<Path>& files) {
  if (files.empty()) fail_usage("--suggest: name at least one event file");
  return Suggestion(files).text();
}

}  // namespace hstu
