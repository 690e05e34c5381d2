#include "hstu/columns/npy_vectors.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <arrow/api.h>
#include <arrow/io/file.h>
#include <parquet/arrow/writer.h>
#include <parquet/exception.h>

#include "hstu/base/error.h"
#include "hstu/base/npy.h"

namespace hstu {
namespace {

constexpr std::int64_t kGroupRows = 1 << 16;

void expect_written(const arrow::Status& status, const Path& file) {
  check(status.ok(), "{}: cannot be written: {}", file.string(), status.message());
}

template <typename T>
T written_value(arrow::Result<T> result, const Path& file) {
  expect_written(result.status(), file);
  return std::move(result).ValueUnsafe();
}

// Memory of another owner as an array without nulls.
template <typename Array>
std::shared_ptr<Array> view_of(const void* values, std::int64_t count, std::size_t bytes) {
  return std::make_shared<Array>(count, arrow::Buffer::Wrap(static_cast<const std::uint8_t*>(values),
                                                            static_cast<std::size_t>(count) * bytes));
}

}  // namespace

std::int64_t write_vectors_as_parquet(const Path& rows, const Path& ids, const VectorColumns& columns,
                                      const Path& parquet) try {
  const NpyColumn<std::int64_t> of_ids(ids);
  const MappedFile file(rows);
  const NpyHeader header = parse_npy_header(file.bytes(), rows);
  check(header.type == npy_type<float>() && header.shape.size() == 2 && header.shape[1] >= 1 &&
            header.shape[1] <= std::int64_t{1} << 24,
        "{}: expected floats of 4 bytes in two dimensions, found {} in {}", rows.string(), header.type,
        header.shape.size());
  check(header.shape[0] == of_ids.size(), "{}: {} rows, and {} has {} ids", rows.string(), header.shape[0],
        ids.string(), of_ids.size());
  const std::int64_t n = header.shape[0], width = header.shape[1];
  const auto* const values = reinterpret_cast<const float*>(file.bytes().data() + header.data_offset);
  const auto vector = arrow::fixed_size_list(arrow::field("element", arrow::float32(), false),
                                             static_cast<std::int32_t>(width));
  const auto schema = arrow::schema(
      {arrow::field(columns.id, arrow::int64(), false), arrow::field(columns.vector, vector, false)});
  const auto output = written_value(arrow::io::FileOutputStream::Open(parquet.string()), parquet);
  const auto writer =
      written_value(parquet::arrow::FileWriter::Open(*schema, arrow::system_memory_pool(), output), parquet);
  for (std::int64_t begin = 0; begin < n; begin += kGroupRows) {
    const std::int64_t count = std::min(kGroupRows, n - begin);
    const auto floats = view_of<arrow::FloatArray>(values + begin * width, count * width, sizeof(float));
    const auto lists = std::make_shared<arrow::FixedSizeListArray>(vector, count, floats);
    const auto of_rows =
        view_of<arrow::Int64Array>(of_ids.values().data() + begin, count, sizeof(std::int64_t));
    expect_written(writer->WriteTable(*arrow::Table::Make(schema, {of_rows, lists}), count), parquet);
  }
  expect_written(writer->Close(), parquet);
  expect_written(output->Close(), parquet);
  return n;
} catch (const parquet::ParquetException& error) {
  fail("{}: cannot be written: {}", parquet.string(), error.what());
}

}  // namespace hstu
