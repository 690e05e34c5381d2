#include "hstu/columns/parquet_vectors.h"

#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include <arrow/api.h>
#include <parquet/arrow/reader.h>
#include <parquet/exception.h>

#include "hstu/base/error.h"
#include "hstu/base/npy.h"
#include "hstu/base/text.h"
#include "hstu/dataset/names.h"

namespace hstu {
namespace {

using arrow::Type;

constexpr std::int64_t kBatchRows = 1 << 13;

class VectorReader {
 public:
  VectorReader(const Path& file, const VectorColumns& columns) : file_(file), columns_(columns) {
    parquet::arrow::FileReaderBuilder builder;
    expect_ok(builder.OpenFile(file.string()));
    parquet::ArrowReaderProperties properties;
    properties.set_batch_size(kBatchRows);
    properties.set_pre_buffer(false);
    builder.properties(properties)->memory_pool(arrow::system_memory_pool());
    reader_ = value_of(builder.Build());
    batches_ = value_of(reader_->GetRecordBatchReader());
    id_ = column(columns.id);
    vector_ = column(columns.vector);
  }

  // The next rows; false after the last.
  bool next(std::vector<std::int64_t>& ids, std::vector<float>& rows) {
    ids.clear();
    rows.clear();
    const std::shared_ptr<arrow::RecordBatch> batch = value_of(batches_->Next());
    if (!batch) return false;
    const arrow::Array &of_ids = *batch->column(id_), &of_rows = *batch->column(vector_);
    for (std::int64_t i = 0; i < batch->num_rows(); ++i, ++row_) {
      check_value(of_ids, i, columns_.id);
      check_value(of_rows, i, columns_.vector);
      ids.push_back(integer(of_ids, i));
      add_row(of_rows, i, rows);
    }
    return true;
  }
  std::int64_t dim() const { return dim_; }  // of the rows so far; -1: there was none

 private:
  [[noreturn]] void fail_at(const std::string& column, const std::string& reason) const {
    fail("{}: column {}, row {}: {}", file_.string(), column, row_, reason);
  }
  void expect_ok(const arrow::Status& status) const {
    check(status.ok(), "{}: {}", file_.string(), status.message());
  }
  template <typename T>
  T value_of(arrow::Result<T> result) const {
    expect_ok(result.status());
    return std::move(result).ValueUnsafe();
  }
  int column(const std::string& name) const {
    const int found = batches_->schema()->GetFieldIndex(name);
    if (found < 0)
      fail_usage("{}: expected one column \"{}\"{}", file_.string(), name,
                 suggestion(name, batches_->schema()->field_names()));
    return found;
  }
  void check_value(const arrow::Array& array, std::int64_t i, const std::string& column) const {
    if (array.IsNull(i)) fail_at(column, "expected a value, found null");
  }

  template <typename ArrowType>
  static std::int64_t value_as(const arrow::Array& array, std::int64_t i) {
    return static_cast<std::int64_t>(static_cast<const arrow::NumericArray<ArrowType>&>(array).Value(i));
  }
  std::int64_t integer(const arrow::Array& array, std::int64_t i) const {
    switch (array.type_id()) {
      case Type::INT8:
        return value_as<arrow::Int8Type>(array, i);
      case Type::INT16:
        return value_as<arrow::Int16Type>(array, i);
      case Type::INT32:
        return value_as<arrow::Int32Type>(array, i);
      case Type::INT64:
        return value_as<arrow::Int64Type>(array, i);
      case Type::UINT8:
        return value_as<arrow::UInt8Type>(array, i);
      case Type::UINT16:
        return value_as<arrow::UInt16Type>(array, i);
      case Type::UINT32:
        return value_as<arrow::UInt32Type>(array, i);
      case Type::UINT64:
        if (value_as<arrow::UInt64Type>(array, i) < 0) fail_at(columns_.id, "the id has more than 63 bits");
        return value_as<arrow::UInt64Type>(array, i);
      case Type::STRING:
        return id_of_text(static_cast<const arrow::StringArray&>(array).GetView(i));
      case Type::LARGE_STRING:
        return id_of_text(static_cast<const arrow::LargeStringArray&>(array).GetView(i));
      default:
        fail_at(columns_.id, fmt::format("expected integers or texts, found {}", array.type()->ToString()));
    }
  }

  template <typename List>
  void add_list(const List& lists, std::int64_t i, std::vector<float>& rows) {
    const arrow::Array& values = *lists.values();
    const std::int64_t begin = lists.value_offset(i), length = lists.value_length(i);
    if (dim_ < 0) dim_ = length;
    if (length != dim_ || length == 0)
      fail_at(columns_.vector,
              fmt::format("expected {} values, found {}", std::max<std::int64_t>(dim_, 1), length));
    for (std::int64_t k = begin; k < begin + length; ++k) {
      check_value(values, k, columns_.vector);
      if (values.type_id() == Type::FLOAT)
        rows.push_back(static_cast<const arrow::FloatArray&>(values).Value(k));
      else if (values.type_id() == Type::DOUBLE)
        rows.push_back(static_cast<float>(static_cast<const arrow::DoubleArray&>(values).Value(k)));
      else
        fail_at(columns_.vector, fmt::format("expected lists of floats, found {}", lists.type()->ToString()));
    }
  }
  void add_row(const arrow::Array& array, std::int64_t i, std::vector<float>& rows) {
    switch (array.type_id()) {
      case Type::LIST:
        return add_list(static_cast<const arrow::ListArray&>(array), i, rows);
      case Type::LARGE_LIST:
        return add_list(static_cast<const arrow::LargeListArray&>(array), i, rows);
      case Type::FIXED_SIZE_LIST:
        return add_list(static_cast<const arrow::FixedSizeListArray&>(array), i, rows);
      default:
        fail_at(columns_.vector, fmt::format("expected lists of floats, found {}", array.type()->ToString()));
    }
  }

  const Path& file_;
  const VectorColumns& columns_;
  std::unique_ptr<parquet::arrow::FileReader> reader_;
  std::shared_ptr<arrow::RecordBatchReader> batches_;
  int id_ = 0, vector_ = 0;
  std::int64_t dim_ = -1;
  std::int64_t row_ = 0;  // of the file
};

}  // namespace

std::int64_t write_vectors(const Path& parquet, const VectorColumns& columns, const Path& rows_path,
                           const Path& ids_path) try {
  VectorReader reader(parquet, columns);
  NpyWriter<std::int64_t> ids_file(ids_path);
  OutputFile rows_file(rows_path);
  const auto header = [&](std::int64_t n) {
    const std::int64_t shape[] = {n, std::max<std::int64_t>(reader.dim(), 0)};
    return npy_header(npy_type<float>(), shape);
  };
  rows_file.write(header(0));
  std::vector<std::int64_t> ids;
  std::vector<float> rows;
  while (reader.next(ids, rows)) {
    ids_file.append(ids);
    rows_file.write(rows.data(), rows.size() * sizeof(float));
  }
  check(ids_file.count() > 0, "{}: expected rows, found none", parquet.string());
  const std::string text = header(ids_file.count());
  rows_file.overwrite(0, text.data(), text.size());
  rows_file.close();
  ids_file.close();
  return ids_file.count();
} catch (const parquet::ParquetException& error) {
  fail("{}: {}", parquet.string(), error.what());
}

}  // namespace hstu
