// Writes one Parquet file, one row group per call, with bytes that depend on the rows alone.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <arrow/api.h>

#include "hstu/base/error.h"
#include "hstu/base/files.h"

namespace hstu {

class ParquetFile {
 public:
  ParquetFile(Path path, std::shared_ptr<arrow::Schema> schema);
  ~ParquetFile();
  ParquetFile(const ParquetFile&) = delete;
  ParquetFile& operator=(const ParquetFile&) = delete;

  // Columns in the order and with the types of the schema, all of one length. Throws Error naming the file.
  void write(const std::vector<std::shared_ptr<arrow::Array>>& columns);
  void close();

 private:
  struct Writer;
  void check_status(const arrow::Status& status) const;

  Path path_;
  std::shared_ptr<arrow::Schema> schema_;
  std::unique_ptr<Writer> writer_;
};

// An Arrow array of `values`; if `valid` is given, rows with valid == 0 are null.
template <typename ArrowType, typename T>
std::shared_ptr<arrow::Array> arrow_array(const std::vector<T>& values,
                                          const std::vector<std::uint8_t>* valid = nullptr) {
  typename arrow::TypeTraits<ArrowType>::BuilderType builder;
  const auto count = static_cast<std::int64_t>(values.size());
  std::shared_ptr<arrow::Array> result;
  arrow::Status status =
      builder.AppendValues(values.data(), count, valid != nullptr ? valid->data() : nullptr);
  if (status.ok()) status = builder.Finish(&result);
  check(status.ok(), "cannot build a column of {} rows: {}", count, status.ToString());
  return result;
}

}  // namespace hstu
