#include "hstu/events/parquet_source.h"

#include <utility>

#include <arrow/api.h>
#include <arrow/io/file.h>
#include <arrow/util/thread_pool.h>
#include <parquet/arrow/reader.h>
#include <parquet/exception.h>

#include "hstu/base/error.h"
#include "hstu/events/arrow_column.h"

namespace hstu {
namespace {

constexpr std::int64_t kBatchRows = std::int64_t{1} << 18;

[[noreturn]] void fail_torn(const Path& path, const std::string& reason) {
  fail("{}: cannot be read as Parquet (it is truncated, damaged or of another kind): {}", path.string(),
       reason);
}

void check_status(const arrow::Status& status, const Path& path) {
  if (!status.ok()) fail_torn(path, status.message());
}

template <typename T>
T value_or_fail(arrow::Result<T> result, const Path& path) {
  check_status(result.status(), path);
  return std::move(result).ValueUnsafe();
}

// Parquet throws where Arrow returns a status; both become Error with the file's name.
template <typename Body>
auto guarded(const Path& path, const Body& body) {
  try {
    return body();
  } catch (const parquet::ParquetException& error) {
    fail_torn(path, error.what());
  }
}

class ParquetSource : public ColumnSource {
 public:
  ParquetSource(Path path, std::span<const std::string> columns)
      : path_(std::move(path)), columns_(columns.begin(), columns.end()) {
    guarded(path_, [&] { open(); });
  }

  std::int64_t total_rows() const override { return reader_->parquet_reader()->metadata()->num_rows(); }

  bool next(RawBatch& batch) override {
    return guarded(path_, [&] {
      std::shared_ptr<arrow::RecordBatch> record;
      check_status(batches_->ReadNext(&record), path_);
      if (record == nullptr) return false;
      batch.file = path_.string();
      batch.first_row = rows_done_;
      batch.rows = record->num_rows();
      batch.columns.clear();
      for (const std::string& name : columns_) {
        const std::string place = fmt::format("{}: column \"{}\"", path_.string(), name);
        batch.columns.push_back(to_raw_column(name, *record->GetColumnByName(name), place));
      }
      rows_done_ += batch.rows;
      return true;
    });
  }

 private:
  void open() {
    auto file = value_or_fail(arrow::io::ReadableFile::Open(path_.string()), path_);
    auto parquet_reader = parquet::ParquetFileReader::Open(std::move(file));
    const std::shared_ptr<parquet::FileMetaData> metadata = parquet_reader->metadata();

    parquet::ArrowReaderProperties properties(/*use_threads=*/true);
    properties.set_batch_size(kBatchRows);
    properties.set_pre_buffer(false);  // It would load every row group at once: the whole file.
    for (int leaf = 0; leaf < metadata->num_columns(); ++leaf) {
      if (metadata->schema()->Column(leaf)->physical_type() == parquet::Type::BYTE_ARRAY) {
        properties.set_read_dictionary(leaf, true);
      }
    }
    reader_ = value_or_fail(
        parquet::arrow::FileReader::Make(arrow::default_memory_pool(), std::move(parquet_reader), properties),
        path_);

    std::shared_ptr<arrow::Schema> schema;
    check_status(reader_->GetSchema(&schema), path_);
    find_columns(path_, columns_, schema->field_names());
    std::vector<int> leaves;
    for (const std::string& name : columns_) {
      const arrow::DataType& type = *schema->GetFieldByName(name)->type();
      const int leaf = metadata->schema()->ColumnIndex(name);  // -1: the column is nested.
      if (leaf < 0 || !is_readable(type)) {
        fail_usage("{}: column \"{}\": expected integers, floats, booleans, strings or timestamps, found {}",
                   path_.string(), name, type.ToString());
      }
      leaves.push_back(leaf);
    }
    std::vector<int> row_groups;
    for (int group = 0; group < reader_->num_row_groups(); ++group) row_groups.push_back(group);
    batches_ = value_or_fail(reader_->GetRecordBatchReader(row_groups, leaves), path_);
  }

  Path path_;
  std::vector<std::string> columns_;
  std::unique_ptr<parquet::arrow::FileReader> reader_;
  std::unique_ptr<arrow::RecordBatchReader> batches_;
  std::int64_t rows_done_ = 0;
};

}  // namespace

std::unique_ptr<ColumnSource> open_parquet(const Path& file, std::span<const std::string> columns) {
  return std::make_unique<ParquetSource>(file, columns);
}

void set_parquet_threads(int threads) {
  const arrow::Status status = arrow::SetCpuThreadPoolCapacity(threads);
  require(status.ok(), "{}", status.message());
}

}  // namespace hstu
