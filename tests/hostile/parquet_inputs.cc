#include "hostile/parquet_inputs.h"

#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include "columns/parquet_files.h"

namespace hstu {
namespace {

constexpr int kRows = 40;

template <typename Value>
std::vector<std::optional<Value>> rows(const std::function<Value(int)>& value) {
  std::vector<std::optional<Value>> values;
  values.reserve(kRows);
  for (int i = 0; i < kRows; ++i) values.push_back(value(i));
  return values;
}

NamedArrays good_columns() {
  return {{"user", array<arrow::Int64Type>(rows<std::int64_t>([](int i) { return i / 10; }))},
          {"item", array<arrow::Int64Type>(rows<std::int64_t>([](int i) { return i % 7; }))},
          {"at", array<arrow::Int64Type>(rows<std::int64_t>([](int i) { return 1'700'000'000 + 60 * i; }))},
          {"kind", texts(rows<std::string>([](int i) { return i % 3 == 0 ? "buy" : "view"; }))},
          {"seconds", array<arrow::DoubleType>(rows<double>([](int i) { return i; }))}};
}

std::shared_ptr<arrow::Table> table_of(const NamedArrays& columns) {
  std::vector<std::shared_ptr<arrow::Field>> fields;
  std::vector<Array> arrays;
  for (const auto& [name, values] : columns) {
    fields.push_back(arrow::field(name, values->type()));
    arrays.push_back(values);
  }
  return arrow::Table::Make(arrow::schema(fields), arrays);
}

void write_columns(const Path& file, const NamedArrays& columns,
                   const std::shared_ptr<parquet::WriterProperties>& properties) {
  constexpr std::int64_t kRowsPerGroup = 1 << 20;
  const auto output = arrow::io::FileOutputStream::Open(file.string()).ValueOrDie();
  const auto status = parquet::arrow::WriteTable(*table_of(columns), arrow::default_memory_pool(), output,
                                                 kRowsPerGroup, properties);
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_TRUE(output->Close().ok());
}

void write_encoded(const Path& file, parquet::Encoding::type encoding) {
  write_columns(
      file, good_columns(),
      parquet::WriterProperties::Builder().disable_dictionary("kind")->encoding("kind", encoding)->build());
}

// 256 rows whose `kind` has a megabyte, in pages of `page_bytes`; a few kilobytes when compressed.
void write_wide_texts(const Path& file, std::int64_t page_bytes) {
  constexpr int kWideRows = 256;
  arrow::Int64Builder numbers;
  arrow::StringBuilder kinds;
  for (int i = 0; i < kWideRows; ++i) {
    ASSERT_TRUE(numbers.Append(i).ok());
    ASSERT_TRUE(kinds.Append(std::string(std::size_t{1} << 20, static_cast<char>('a' + i % 26))).ok());
  }
  const Array number = numbers.Finish().ValueOrDie(), kind = kinds.Finish().ValueOrDie();
  const auto properties = parquet::WriterProperties::Builder()
                              .disable_dictionary("kind")
                              ->compression(parquet::Compression::ZSTD)
                              ->data_pagesize(page_bytes)
                              ->write_batch_size(1)
                              ->build();
  write_columns(file,
                {{"user", number}, {"item", number}, {"at", number}, {"kind", kind}, {"seconds", number}},
                properties);
}

// A bit of a page of `user` differs from what was written.
void write_damaged_page(const Path& file) {
  constexpr std::size_t kInsideThePage = 200;
  const auto properties =
      parquet::WriterProperties::Builder().disable_dictionary()->enable_page_checksum()->build();
  write_columns(file, good_columns(), properties);
  std::string bytes = read_file(file);
  bytes[kInsideThePage] = static_cast<char>(bytes[kInsideThePage] ^ 1);
  write_file(file, bytes);
}

void write_with(const Path& file, std::size_t column, const std::string& name, const Array& values) {
  NamedArrays columns = good_columns();
  columns[column] = {name, values};
  write_parquet(file, columns);
}

void write_with_another(const Path& file, const std::string& name, const Array& values) {
  NamedArrays columns = good_columns();
  columns.emplace_back(name, values);
  write_parquet(file, columns);
}

using Writer = std::function<void(const Path&)>;

const std::map<std::string, Writer>& writers() {
  static const std::map<std::string, Writer> table = {
      {"delta-texts", [](const Path& file) { write_encoded(file, parquet::Encoding::DELTA_BYTE_ARRAY); }},
      {"delta-length-texts",
       [](const Path& file) { write_encoded(file, parquet::Encoding::DELTA_LENGTH_BYTE_ARRAY); }},
      {"plain-texts", [](const Path& file) { write_encoded(file, parquet::Encoding::PLAIN); }},
      {"wide-texts", [](const Path& file) { write_wide_texts(file, 1 << 20); }},
      {"bomb", [](const Path& file) { write_wide_texts(file, 1 << 30); }},
      {"damaged-page", write_damaged_page},
      {"user-twice", [](const Path& file) { write_with_another(file, "user", good_columns()[0].second); }},
      {"kind-twice", [](const Path& file) { write_with_another(file, "kind", good_columns()[3].second); }},
      {"no-user", [](const Path& file) { write_with(file, 0, "usr", good_columns()[0].second); }},
      {"text-users", [](const Path& file) { write_with(file, 0, "user", good_columns()[3].second); }},
      {"real-users", [](const Path& file) { write_with(file, 0, "user", good_columns()[4].second); }},
      {"text-times", [](const Path& file) { write_with(file, 2, "at", good_columns()[3].second); }},
      {"negative-items",
       [](const Path& file) {
         write_with(file, 1, "item",
                    array<arrow::Int64Type>(rows<std::int64_t>([](int i) { return i - 5; })));
       }},
      {"nan-seconds",
       [](const Path& file) {
         write_with(file, 4, "seconds", array<arrow::DoubleType>(rows<double>([](int i) {
                      return i == 3 ? std::numeric_limits<double>::quiet_NaN() : i;
                    })));
       }},
      {"null-seconds",
       [](const Path& file) {
         auto values = rows<double>([](int i) { return i; });
         values[5].reset();
         write_with(file, 4, "seconds", array<arrow::DoubleType>(values));
       }},
      {"wide-users",
       [](const Path& file) {
         write_with(file, 0, "user", array<arrow::UInt64Type>(rows<std::uint64_t>([](int) {
                      return std::numeric_limits<std::uint64_t>::max();
                    })));
       }},
      {"no-rows", [](const Path& file) {
         NamedArrays columns = good_columns();
         for (auto& [name, values] : columns) values = values->Slice(0, 0);
         write_parquet(file, columns);
       }}};
  return table;
}

}  // namespace

void write_good_parquet(const Path& file) {
  write_parquet(file, good_columns());
}

void write_hostile_parquet(const std::string& name, const Path& file) {
  const auto found = writers().find(name);
  ASSERT_NE(found, writers().end()) << "no Parquet input is named " << name;
  found->second(file);
}

}  // namespace hstu
