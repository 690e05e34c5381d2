#include "hstu/suggestion/schema_suggestion.h"

#include <algorithm>
#include <cctype>
#include <iterator>

#include "hstu/base/error.h"
#include "hstu/base/text.h"
#include "hstu/columns/csv_source.h"
#include "hstu/columns/file_columns.h"
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

// The columns that every file has and that can be read.
std::vector<std::string> common_columns(const std::vector<Path>& files, std::vector<std::string>& remarks) {
  std::vector<std::string> names;
  for (std::size_t f = 0; f < files.size(); ++f) {
    std::vector<std::string> found;
    for (const FileColumn& column : list_columns(files[f])) {
      if (column.readable) {
        found.push_back(column.name);
      } else if (f == 0) {
        remarks.push_back(fmt::format("{}: {}, which hstu does not read", column.name, column.type_name));
      }
    }
    if (f == 0) names = found;
    std::erase_if(names, [&](const std::string& name) {
      const bool everywhere = std::find(found.begin(), found.end(), name) != found.end();
      if (!everywhere)
        remarks.push_back(fmt::format("{}: missing in {}", name, files[f].filename().string()));
      return !everywhere;
    });
  }
  return names;
}

std::string describe(const ColumnSummary& column) {
  const std::string nulls = column.nulls > 0 ? fmt::format(", {} nulls", with_separators(column.nulls)) : "";
  return fmt::format("{}, {} ({} distinct{})", column.type_name, column.text(),
                     with_separators(column.distinct), nulls);
}

[[noreturn]] void fail_no(const char* role, const std::vector<ColumnSummary>& columns, const Path& file) {
  std::vector<std::string> names;
  names.reserve(columns.size());
  for (const ColumnSummary& column : columns)
    names.push_back(fmt::format("{} ({})", column.name, column.type_name));
  fail_usage("{}: no column can be the {}; the columns are {}", file.string(), role, fmt::join(names, ", "));
}

class Suggestion {
 public:
  explicit Suggestion(const std::vector<Path>& files) : files_(files), folder_(common_folder(files)) {
    const std::vector<std::string> names = common_columns(files, remarks_);
    columns_ = summarize_columns(files.front(), names, {.csv = CsvFormat()});
    if (columns_.empty()) fail_usage("{}: the file contains no rows to guess from", files.front().string());
  }

  std::string text() {
    const auto user = guess_user(columns_);
    if (!user) fail_no("user", columns_, files_.front());
    const auto item = guess_item(columns_, *user);
    if (!item) fail_no("item", columns_, files_.front());
    const auto time = guess_time(columns_);
    if (!time) fail_no("time", columns_, files_.front());
    used_ = {user->column, item->column, time->column};
    const GuessedActions actions = guess_actions(columns_);
    used_.insert(used_.end(), actions.columns.begin(), actions.columns.end());
    write_head();
    write_id("user", *user);
    write_id("item", *item);
    write_time(*time);
    if (is_csv_file(files_.front())) write_integers({user->column, item->column});
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
    names.reserve(files_.size());
    for (const Path& file : files_)
      names.push_back(
          std::filesystem::absolute(file).lexically_normal().lexically_relative(folder_).string());
    line(fmt::format("files = {}  # patterns are allowed: \"events-*.parquet\"", quoted_list(names)));
    line("");
  }

  void write_id(const char* role, const GuessedColumn& guess) {
    line(fmt::format("# {}: {}", guess.reason, one_line(describe(*guess.column))));
    line(fmt::format("{} = {}", role, quoted(guess.column->name)));
  }

  void write_time(const GuessedTime& time) {
    write_id("time", time);
    if (time.column->kind == RawColumn::Kind::kInteger) line(fmt::format("time_unit = \"{}\"", time.unit));
    if (time.relative) line("relative_time = true  # the times do not count from 1970");
    line("");
  }

  // Ids of CSV files are texts unless the schema says otherwise.
  void write_integers(const std::vector<const ColumnSummary*>& ids) {
    std::vector<std::string> columns;
    for (const ColumnSummary* id : ids) {
      if (id->kind == RawColumn::Kind::kInteger) columns.push_back(id->name);
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
      const bool used = std::find(used_.begin(), used_.end(), &column) != used_.end();
      if (!used) line("# " + one_line(fmt::format("{}: {}", column.name, describe(column))));
    }
    for (const std::string& remark : remarks_) line("# " + one_line(remark));
  }

  const std::vector<Path>& files_;
  Path folder_;
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
