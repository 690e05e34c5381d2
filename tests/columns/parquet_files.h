// Small Parquet files for tests.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <arrow/api.h>
#include <arrow/io/file.h>
#include <gtest/gtest.h>
#include <parquet/arrow/writer.h>

#include "hstu/base/files.h"

namespace hstu {

using Array = std::shared_ptr<arrow::Array>;
using NamedArrays = std::vector<std::pair<std::string, Array>>;

template <typename Builder, typename T>
Array build(Builder& builder, const std::vector<std::optional<T>>& values) {
  for (const auto& value : values) {
    EXPECT_TRUE((value ? builder.Append(*value) : builder.AppendNull()).ok());
  }
  return builder.Finish().ValueOrDie();
}

// array<arrow::UInt32Type>({1, std::nullopt, 3})
template <typename ArrowType>
Array array(const std::vector<std::optional<typename ArrowType::c_type>>& values) {
  typename arrow::TypeTraits<ArrowType>::BuilderType builder(arrow::TypeTraits<ArrowType>::type_singleton(),
                                                             arrow::default_memory_pool());
  return build(builder, values);
}

inline Array texts(const std::vector<std::optional<std::string>>& values) {
  arrow::StringBuilder builder;
  return build(builder, values);
}

inline Array large_texts(const std::vector<std::optional<std::string>>& values) {
  arrow::LargeStringBuilder builder;
  return build(builder, values);
}

inline Array text_views(const std::vector<std::optional<std::string>>& values) {
  arrow::StringViewBuilder builder;
  return build(builder, values);
}

inline Array dictionary(const std::vector<std::optional<std::string>>& values) {
  arrow::StringDictionaryBuilder builder;
  return build(builder, values);
}

inline Array timestamps(arrow::TimeUnit::type unit, const std::vector<std::optional<std::int64_t>>& values) {
  arrow::TimestampBuilder builder(arrow::timestamp(unit), arrow::default_memory_pool());
  return build(builder, values);
}

// Keeps Arrow's own schema in the file, as pyarrow and Polars do, so that dictionaries and large strings come
// back.
inline void write_parquet(const Path& file, const NamedArrays& columns, std::int64_t rows_per_group = 1024) {
  std::vector<std::shared_ptr<arrow::Field>> fields;
  std::vector<Array> arrays;
  for (const auto& [name, values] : columns) {
    fields.push_back(arrow::field(name, values->type()));
    arrays.push_back(values);
  }
  const auto table = arrow::Table::Make(arrow::schema(fields), arrays);
  const auto output = arrow::io::FileOutputStream::Open(file.string()).ValueOrDie();
  const auto properties = parquet::ArrowWriterProperties::Builder().store_schema()->build();
  const auto status = parquet::arrow::WriteTable(*table, arrow::default_memory_pool(), output, rows_per_group,
                                                 parquet::default_writer_properties(), properties);
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_TRUE(output->Close().ok());
}

}  // namespace hstu
