#include "hstu/columns/csv_source.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <arrow/api.h>
#include <arrow/csv/api.h>
#include <arrow/csv/invalid_row.h>

#include "hstu/base/contains.h"
#include "hstu/base/csv_text.h"
#include "hstu/base/error.h"
#include "hstu/base/text.h"
#include "hstu/columns/arrow_column.h"
#include "hstu/columns/csv_input.h"
#include "hstu/columns/null_words.h"
#include "hstu/columns/raw_checks.h"

namespace hstu {
namespace {

constexpr std::int32_t kBlockBytes = kLongestCsvRow;  // read at a time
constexpr std::size_t kShownBytes = 80;               // of a row, in messages

// What separates the fields of a header that has been read as one name; nullptr: nothing does.
const char* other_delimiter(const std::vector<std::string>& names) {
  if (names.size() != 1) return nullptr;
  for (const char* delimiter : {"\t", ";", "|", ","}) {
    if (names.front().find(delimiter) != std::string::npos) return *delimiter == '\t' ? "\\t" : delimiter;
  }
  return nullptr;
}

// Of a message of Arrow, "In CSV column #1: Row #2: CSV conversion error to string: invalid UTF8 data".
std::optional<std::int64_t> record_of_invalid_utf8(std::string_view message) {
  constexpr std::string_view kRow = "Row #";
  const std::size_t at = message.find(kRow);
  if (at == std::string_view::npos || message.find("invalid UTF8 data") == std::string_view::npos)
    return std::nullopt;
  const std::string_view number = message.substr(at + kRow.size());
  return parse_number<std::int64_t>(number.substr(0, number.find(':')));
}

std::string shown(std::string_view text) {
  return text.size() <= kShownBytes ? std::string(text) : std::string(text.substr(0, kShownBytes)) + "...";
}

class CsvSource : public ColumnSource {
 public:
  CsvSource(Path path, std::span<const std::string> columns, const CsvFormat& format,
            std::span<const std::string> nulls)
      : path_(std::move(path)),
        columns_(columns.begin(), columns.end()),
        format_(format),
        nulls_(nulls.begin(), nulls.end()) {
    nulls_.emplace_back();  // an empty field
    // Of a file without a header that has no row either, Arrow knows no columns.
    is_empty_ = !format_.columns.empty() && value_or_fail(open_csv_bytes(path_)->Read(1))->size() == 0;
    const std::vector<std::string> names = this->names();
    fields_ = std::ssize(names);
    for (const std::string& column : columns_) {
      const auto times = std::count(names.begin(), names.end(), column);
      if (times > 1) fail_usage("{}: the file has more than one column of this name", place(column));
      if (times == 0) fail_missing(column, names);
    }
  }

  // Of all columns of the file.
  std::vector<std::string> names() {
    return is_empty_ ? format_.columns : start({})->schema()->field_names();
  }

  std::vector<std::int64_t> groups() const override { return {0}; }
  std::optional<RawColumn> range(std::size_t, std::size_t) const override { return std::nullopt; }
  bool is_text(std::size_t column) const override {
    return !contains(format_.integers, columns_[column]) && !contains(format_.numbers, columns_[column]);
  }
  void select(std::size_t) override {
    require(rows_done_ == 0, "{}: its only group has already been read", path_.string());
  }
  std::string remark() const override { return remark_; }

  bool next(RawBatch& batch) override {
    if (is_empty_) return false;
    if (reader_ == nullptr) reader_ = start(columns_);
    std::shared_ptr<arrow::RecordBatch> record;
    check_status(reader_->ReadNext(&record));
    if (record == nullptr) {
      remark_ = input_->remark();
      return false;
    }
    if (rows_done_ == 0) check_no_header(*record);
    batch.file = path_.string();
    batch.first_row = rows_done_;
    batch.line_of = lines();
    batch.rows = record->num_rows();
    batch.columns.clear();
    for (const std::string& name : columns_) batch.columns.push_back(convert(name, *record));
    rows_done_ += batch.rows;
    return true;
  }

 private:
  using Reader = std::shared_ptr<arrow::csv::StreamingReader>;

  struct BadRow {
    std::int64_t record, expected, found;  // record: from 1, the header included, blank lines not
    std::string text;
  };

  std::string place(const std::string& column) const {
    return fmt::format("{}: column \"{}\"", path_.string(), column);
  }

  // The line on which a row begins; rows count from 0, lines from 1.
  std::function<std::int64_t(std::int64_t)> lines() const {
    return [path = path_, format = format_](std::int64_t row) {
      return line_of_record(path, format, row + (format.columns.empty() ? 2 : 1));
    };
  }

  [[noreturn]] void fail_missing(const std::string& column, const std::vector<std::string>& names) const {
    if (!format_.columns.empty())
      fail_usage("{}: columns does not name the column \"{}\"{}", path_.string(), column,
                 suggestion(column, names));
    if (const char* const other = other_delimiter(names)) {
      fail_usage("{}: the first line is one column, \"{}\": set delimiter = \"{}\" in the schema",
                 path_.string(), shown(names.front()), other);
    }
    fail_usage(
        "{}: the first line names no column \"{}\"{}; if the file has no header, list its columns in the "
        "schema: columns = [\"...\"]",
        path_.string(), column, suggestion(column, names));
  }

  void check_status(const arrow::Status& status) const {
    if (status.ok()) return;
    if (bad_row_) {
      fail("{}: line {}: expected {} fields, found {}: {}", path_.string(),
           line_of_record(path_, format_, bad_row_->record), bad_row_->expected, bad_row_->found,
           bad_row_->text);
    }
    const std::string& reason = status.message();
    if (reason.find("straddling") != std::string::npos) {
      fail("{}: line {}: a row is longer than {}: a quote may be missing, or set quote = \"\" in the schema",
           path_.string(), lines()(rows_done_), human_bytes(kBlockBytes));
    }
    if (input_ != nullptr) {
      if (const auto fault = input_->fault()) fail("{}", *fault);
    }
    if (reason.find("Empty CSV") != std::string::npos)
      fail("{}: expected a first line with the names of the columns, found none", path_.string());
    if (const auto record = record_of_invalid_utf8(reason)) {
      fail(
          "{}: line {}: expected text in UTF-8: write the file again in UTF-8 (iconv -f WINDOWS-1252 -t "
          "UTF-8)",
          path_.string(), line_of_record(path_, format_, *record));
    }
    fail("{}: cannot be read as {} (it is truncated, damaged or of another format): {}", path_.string(),
         kind_of_csv(path_), reason);
  }

  template <typename T>
  T value_or_fail(arrow::Result<T> result) const {
    check_status(result.status());
    return std::move(result).ValueUnsafe();
  }

  // No columns: all, to learn their names.
  Reader start(const std::vector<std::string>& columns) {
    input_ = std::make_shared<CheckedQuotes>(path_, format_, fields_);
    auto reading = arrow::csv::ReadOptions::Defaults();
    reading.use_threads = false;
    reading.block_size = kBlockBytes;
    reading.column_names = format_.columns;
    auto parsing = arrow::csv::ParseOptions::Defaults();
    parsing.delimiter = delimiter_of(path_, format_);
    parsing.quoting = format_.quote.has_value();
    parsing.quote_char = format_.quote.value_or('"');
    parsing.escaping = format_.escape.has_value();
    parsing.escape_char = format_.escape.value_or('\\');
    parsing.newlines_in_values = parsing.quoting || parsing.escaping;
    parsing.invalid_row_handler = [this](const arrow::csv::InvalidRow& row) {
      bad_row_ = {row.number, row.expected_columns, row.actual_columns, shown(row.text)};
      return arrow::csv::InvalidRowResult::Error;
    };
    auto converting = arrow::csv::ConvertOptions::Defaults();
    converting.default_column_type = arrow::utf8();
    converting.include_columns = columns;
    converting.null_values = nulls_;
    converting.strings_can_be_null = true;
    converting.quoted_strings_can_be_null = false;
    return value_or_fail(arrow::csv::StreamingReader::Make(arrow::io::IOContext(arrow::system_memory_pool()),
                                                           input_, reading, parsing, converting));
  }

  // With `columns`, the first line is a row. A header there would become an event, or a puzzling error.
  void check_no_header(const arrow::RecordBatch& record) const {
    if (format_.columns.empty() || record.num_rows() == 0) return;
    const bool header = std::all_of(columns_.begin(), columns_.end(), [&](const std::string& name) {
      const auto& values = static_cast<const arrow::StringArray&>(*record.GetColumnByName(name));
      return values.IsValid(0) && values.GetView(0) == name;
    });
    if (header)
      fail_usage(
          "{}: the first line is a header: remove columns from the schema, which is for files without one",
          path_.string());
  }

  RawColumn convert(const std::string& name, const arrow::RecordBatch& record) const {
    const std::shared_ptr<arrow::Array> array = record.GetColumnByName(name);
    if (contains(format_.integers, name)) return convert_numbers(name, *array, RawColumn::Kind::kInteger);
    if (contains(format_.numbers, name)) return convert_numbers(name, *array, RawColumn::Kind::kReal);
    return to_raw_column(name, *array, place(name));
  }

  RawColumn convert_numbers(const std::string& name, const arrow::Array& array, RawColumn::Kind kind) const {
    const auto& texts = static_cast<const arrow::StringArray&>(array);
    const auto rows = static_cast<std::size_t>(texts.length());
    RawColumn column;
    column.name = name;
    column.kind = kind;
    column.type_name = kind == RawColumn::Kind::kInteger ? "integer" : "number";
    if (texts.null_count() > 0) column.nulls.resize(rows);
    const auto read = [&](auto& values) {
      values.resize(rows);
      for (std::size_t r = 0; r < rows; ++r) {
        const auto row = static_cast<std::int64_t>(r);
        if (texts.IsNull(row)) {
          column.nulls[r] = 1;
          continue;
        }
        const auto value = parse_number<std::decay_t<decltype(values[r])>>(texts.GetView(row));
        if (!value) fail_value(column, row, texts.GetView(row));
        if (kind == RawColumn::Kind::kReal && is_rounded_integer(texts.GetView(row)))
          fail_rounded(column, row, texts.GetView(row));
        values[r] = *value;
      }
    };
    kind == RawColumn::Kind::kInteger ? read(column.integers) : read(column.reals);
    return column;
  }

  // Of a long id, which a condition would take for its neighbours.
  [[noreturn]] void fail_rounded(const RawColumn& column, std::int64_t row, std::string_view text) const {
    fail("{}: line {}: a double would round {}: set integers = [\"{}\"] in the schema", place(column.name),
         lines()(rows_done_ + row), text, column.name);
  }

  [[noreturn]] void fail_value(const RawColumn& column, std::int64_t row, std::string_view text) const {
    fail("{}: line {}: expected {} {}, found \"{}\"{}", place(column.name), lines()(rows_done_ + row),
         column.kind == RawColumn::Kind::kInteger ? "an integer of 64 bits" : "a number",
         column.kind == RawColumn::Kind::kInteger
             ? "because the schema lists the column in integers"
             : "because the column is the weight, or a condition compares it with numbers",
         shown(text),
         is_null_word(text) ? fmt::format("; if it means null, set nulls = [\"{}\"] in the schema", text)
                            : "");
  }

  Path path_;
  std::vector<std::string> columns_;
  CsvFormat format_;
  std::vector<std::string> nulls_;
  bool is_empty_ = false;
  std::int64_t fields_ = 0;  // of a row; 0: not known yet
  std::optional<BadRow> bad_row_;
  std::shared_ptr<CheckedQuotes> input_;
  Reader reader_;
  std::string remark_;
  std::int64_t rows_done_ = 0;
};

}  // namespace

std::vector<std::string> list_csv_columns(const Path& file, const CsvFormat& format) {
  return CsvSource(file, {}, format, {}).names();
}

std::unique_ptr<ColumnSource> open_csv(const Path& file, std::span<const std::string> columns,
                                       const CsvFormat& format, std::span<const std::string> nulls) {
  return std::make_unique<CsvSource>(file, columns, format, nulls);
}

}  // namespace hstu
