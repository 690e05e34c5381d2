#include "hstu/columns/parquet_text.h"

#include <iterator>
#include <memory>
#include <string_view>

#include <arrow/api.h>
#include <arrow/csv/api.h>
#include <arrow/io/file.h>
#include <arrow/io/stdio.h>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/writer.h>
#include <parquet/exception.h>

#include "hstu/base/contains.h"
#include "hstu/base/error.h"
#include "hstu/base/floor_divide.h"
#include "hstu/base/terminal.h"
#include "hstu/base/text.h"
#include "hstu/columns/arrow_column.h"
#include "hstu/columns/write_descriptor.h"

namespace hstu {
namespace {

using arrow::Type;

constexpr std::int64_t kTextRows = 1 << 13;      // of a batch: lists may be long
constexpr std::int64_t kRowGroupRows = 1 << 20;  // of the written file
constexpr std::size_t kTextBytes = std::size_t{1} << 18;

[[noreturn]] void fail_table(const Path& file, const std::string& reason) {
  fail("{}: cannot be converted between Parquet and CSV: {}", file.string(), reason);
}

template <typename T>
T value_of(arrow::Result<T> result, const Path& file) {
  if (!result.ok()) fail_table(file, result.status().message());
  return std::move(result).ValueUnsafe();
}

void expect_ok(const arrow::Status& status, const Path& file) {
  if (!status.ok()) fail_table(file, status.message());
}

bool has_elements(Type::type id) {
  return id == Type::LIST || id == Type::LARGE_LIST;
}

bool is_printable(const arrow::DataType& type) {
  switch (type.id()) {
    case Type::BOOL:
    case Type::FLOAT:
    case Type::DOUBLE:
    case Type::STRING:
    case Type::LARGE_STRING:
    case Type::DATE32:
    case Type::TIMESTAMP:
      return true;
    case Type::DICTIONARY:
      return is_printable(*static_cast<const arrow::DictionaryType&>(type).value_type());
    case Type::LIST:
    case Type::LARGE_LIST:
      return !has_elements(type.field(0)->type()->id()) && is_printable(*type.field(0)->type());
    default:
      return arrow::is_integer(type.id()) || is_uuid(type) || type.id() == Type::NA;
  }
}

// Appends values of arrays as text without quotes.
class ValueText {
 public:
  ValueText(std::int64_t time_steps, std::string& to) : time_steps_(time_steps), to_(to) {}

  void put(const arrow::Array& array, std::int64_t i) {
    if (array.IsNull(i)) return;
    switch (array.type_id()) {
      case Type::STRING:
        to_ += static_cast<const arrow::StringArray&>(array).GetView(i);
        return;
      case Type::LARGE_STRING:
        to_ += static_cast<const arrow::LargeStringArray&>(array).GetView(i);
        return;
      case Type::FIXED_SIZE_BINARY:
        to_ += uuid_text(static_cast<const arrow::FixedSizeBinaryArray&>(array).GetValue(i));
        return;
      case Type::LIST:
        return put_list(static_cast<const arrow::ListArray&>(array), i);
      case Type::LARGE_LIST:
        return put_list(static_cast<const arrow::LargeListArray&>(array), i);
      case Type::DICTIONARY: {
        const auto& codes = static_cast<const arrow::DictionaryArray&>(array);
        return put(*codes.dictionary(), codes.GetValueIndex(i));
      }
      default:
        put_number(array, i);
    }
  }

 private:
  template <typename List>
  void put_list(const List& lists, std::int64_t i) {
    for (std::int64_t e = lists.value_offset(i); e < lists.value_offset(i + 1); ++e) {
      if (e > lists.value_offset(i)) to_ += ' ';
      put(*lists.values(), e);
    }
  }

  template <typename ArrowType>
  void put_as(const arrow::Array& array, std::int64_t i) {
    fmt::format_to(std::back_inserter(to_), "{}",
                   +static_cast<const arrow::NumericArray<ArrowType>&>(array).Value(i));
  }

  void put_number(const arrow::Array& array, std::int64_t i) {
    switch (array.type_id()) {
      case Type::BOOL:
        to_ += static_cast<const arrow::BooleanArray&>(array).Value(i) ? '1' : '0';
        return;
      case Type::INT8:
        return put_as<arrow::Int8Type>(array, i);
      case Type::INT16:
        return put_as<arrow::Int16Type>(array, i);
      case Type::INT32:
        return put_as<arrow::Int32Type>(array, i);
      case Type::INT64:
        return put_as<arrow::Int64Type>(array, i);
      case Type::UINT8:
        return put_as<arrow::UInt8Type>(array, i);
      case Type::UINT16:
        return put_as<arrow::UInt16Type>(array, i);
      case Type::UINT32:
        return put_as<arrow::UInt32Type>(array, i);
      case Type::UINT64:
        return put_as<arrow::UInt64Type>(array, i);
      case Type::FLOAT:
        return put_as<arrow::FloatType>(array, i);
      case Type::DOUBLE:
        return put_as<arrow::DoubleType>(array, i);
      default:
        put_time(array, i);
    }
  }

  void put_time(const arrow::Array& array, std::int64_t i) {
    constexpr std::int64_t kSecondsOfDay = 86'400;
    std::int64_t time = 0;
    if (array.type_id() == Type::DATE32) {
      time = static_cast<const arrow::Date32Array&>(array).Value(i) * kSecondsOfDay * time_steps_;
    } else {
      const std::int64_t units = units_per_second(*array.type());
      const std::int64_t value = static_cast<const arrow::TimestampArray&>(array).Value(i);
      const std::int64_t seconds = floor_divide(value, units);
      time = seconds * time_steps_ + (value - seconds * units) * time_steps_ / units;
    }
    fmt::format_to(std::back_inserter(to_), "{}", time);
  }

  std::int64_t time_steps_;
  std::string& to_;
};

void put_quoted(std::string_view text, std::string& to) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) {
    to += text;
    return;
  }
  to += '"';
  for (const char c : text) {
    if (c == '"') to += '"';
    to += c;
  }
  to += '"';
}

std::vector<int> printable_columns(const arrow::Schema& schema, const Path& file) {
  std::vector<int> columns;
  for (int c = 0; c < schema.num_fields(); ++c) {
    const arrow::Field& field = *schema.field(c);
    if (is_printable(*field.type())) {
      columns.push_back(c);
    } else {
      print_note("note: {}: column {} of type {} is left out\n", file.string(), field.name(),
                 field.type()->ToString());
    }
  }
  return columns;
}

// Every name is a column of the table, and has one type.
void check_types(const TableTypes& types, const arrow::Schema& schema) {
  std::vector<std::string> seen;
  for (const auto* names : {&types.integers, &types.reals, &types.texts}) {
    for (const std::string& name : *names) {
      if (schema.GetFieldIndex(name) < 0)
        fail_usage("standard input: expected one column \"{}\"{}", name,
                   suggestion(name, schema.field_names()));
      if (contains(seen, name)) fail_usage("the column \"{}\" has two types", name);
      seen.push_back(name);
    }
  }
}

}  // namespace

void write_as_csv(const Path& parquet, std::int64_t time_steps, int descriptor) try {
  parquet::arrow::FileReaderBuilder builder;
  expect_ok(builder.OpenFile(parquet.string()), parquet);
  parquet::ArrowReaderProperties properties;
  properties.set_coerce_int96_timestamp_unit(arrow::TimeUnit::MICRO);  // as events are read
  properties.set_batch_size(kTextRows);
  properties.set_pre_buffer(false);
  builder.properties(properties)->memory_pool(arrow::system_memory_pool());
  const std::unique_ptr<parquet::arrow::FileReader> reader = value_of(builder.Build(), parquet);
  const auto batches = value_of(reader->GetRecordBatchReader(), parquet);
  const std::vector<int> columns = printable_columns(*batches->schema(), parquet);
  std::string text, value;
  for (const int c : columns) {
    if (c != columns.front()) text += ',';
    put_quoted(batches->schema()->field(c)->name(), text);
  }
  text += '\n';
  ValueText values(time_steps, value);
  while (const std::shared_ptr<arrow::RecordBatch> batch = value_of(batches->Next(), parquet)) {
    for (std::int64_t row = 0; row < batch->num_rows(); ++row) {
      for (const int c : columns) {
        if (c != columns.front()) text += ',';
        value.clear();
        values.put(*batch->column(c), row);
        put_quoted(value, text);
      }
      text += '\n';
      if (text.size() < kTextBytes) continue;
      if (!write_to(descriptor, text)) return;
      text.clear();
    }
  }
  write_to(descriptor, text);
} catch (const parquet::ParquetException& error) {
  fail_table(parquet, error.what());
}

void write_as_parquet(const TableTypes& types, const Path& file) try {
  const auto input = std::make_shared<arrow::io::StdinStream>();  // a pipe: it cannot seek
  arrow::csv::ReadOptions reading = arrow::csv::ReadOptions::Defaults();
  reading.use_threads = false;
  arrow::csv::ParseOptions parsing = arrow::csv::ParseOptions::Defaults();
  parsing.newlines_in_values = true;
  arrow::csv::ConvertOptions conversion = arrow::csv::ConvertOptions::Defaults();
  for (const std::string& name : types.integers) conversion.column_types[name] = arrow::int64();
  for (const std::string& name : types.reals) conversion.column_types[name] = arrow::float32();
  for (const std::string& name : types.texts) conversion.column_types[name] = arrow::utf8();
  conversion.null_values = {};
  const auto table =
      value_of(arrow::csv::StreamingReader::Make(arrow::io::IOContext(arrow::system_memory_pool()), input,
                                                 reading, parsing, conversion),
               file);
  check_types(types, *table->schema());
  const auto output = value_of(arrow::io::FileOutputStream::Open(file.string()), file);
  const auto writer =
      value_of(parquet::arrow::FileWriter::Open(
                   *table->schema(), arrow::system_memory_pool(), output,
                   parquet::WriterProperties::Builder().max_row_group_length(kRowGroupRows)->build()),
               file);
  while (true) {
    const std::shared_ptr<arrow::RecordBatch> batch = value_of(table->Next(), file);
    if (!batch) break;
    expect_ok(writer->WriteRecordBatch(*batch), file);
  }
  expect_ok(writer->Close(), file);
  expect_ok(output->Close(), file);
} catch (const parquet::ParquetException& error) {
  fail_table(file, error.what());
}

}  // namespace hstu
