#include "hstu/columns/parquet_source.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <type_traits>
#include <utility>

#include <arrow/api.h>
#include <arrow/io/file.h>
#include <arrow/util/thread_pool.h>
#include <parquet/arrow/reader.h>
#include <parquet/exception.h>
#include <parquet/statistics.h>

#include "hstu/base/contains.h"
#include "hstu/base/error.h"
#include "hstu/base/text.h"
#include "hstu/columns/arrow_column.h"
#include "hstu/columns/null_words.h"
#include "hstu/columns/parquet_pages.h"

namespace hstu {
namespace {

constexpr std::int64_t kStreamBytes = std::int64_t{1} << 20;
constexpr std::int64_t kBatchBytes = std::int64_t{8} << 20;  // of a batch's columns, about: texts may be long

std::unique_ptr<arrow::CappedMemoryPool>& capped_pool() {
  static std::unique_ptr<arrow::CappedMemoryPool> pool;
  return pool;
}

// The system's allocator: Arrow's other pools keep freed memory, several times the amount in use.
arrow::MemoryPool* memory_pool() {
  return capped_pool() != nullptr ? capped_pool().get() : arrow::system_memory_pool();
}

struct OutOfDecodingMemory {};

[[noreturn]] void fail_torn(const Path& path, const std::string& reason) {
  fail("{}: cannot be read as Parquet (it is truncated, damaged or of another format): {}", path.string(),
       reason);
}

void check_status(const arrow::Status& status, const Path& path) {
  if (status.IsOutOfMemory()) throw OutOfDecodingMemory();
  if (!status.ok()) fail_torn(path, status.message());
}

template <typename T>
T value_or_fail(arrow::Result<T> result, const Path& path) {
  check_status(result.status(), path);
  return std::move(result).ValueUnsafe();
}

// Parquet throws where Arrow returns a status; both become Error with the file's name.
template <typename Body>
auto as_status(const Path& path, const Body& body) {
  try {
    return body();
  } catch (const parquet::ParquetStatusException& error) {
    check_status(error.status(), path);
    fail_torn(path, error.what());
  } catch (const parquet::ParquetException& error) {
    fail_torn(path, error.what());
  }
}

class ParquetSource : public ColumnSource {
 public:
  ParquetSource(Path path, std::span<const std::string> columns, const ReadOptions& options)
      : path_(std::move(path)),
        columns_(columns.begin(), columns.end()),
        lists_(options.lists),
        nulls_(options.nulls) {
    guarded([&] {
      open(options);
      find_leaves();
    });
  }

  std::vector<std::int64_t> groups() const override {
    std::vector<std::int64_t> rows;
    for (int group = 0; group < metadata().num_row_groups(); ++group) {
      rows.push_back(metadata().RowGroup(group)->num_rows());
    }
    return rows;
  }

  std::optional<RawColumn> range(std::size_t column, std::size_t group) const override {
    if (is_text_[column] || is_untyped_[column]) return std::nullopt;
    return guarded([&]() -> std::optional<RawColumn> {
      const auto chunk = metadata().RowGroup(static_cast<int>(group))->ColumnChunk(leaves_[column]);
      const std::shared_ptr<parquet::Statistics> statistics =
          chunk->is_stats_set() ? chunk->statistics() : nullptr;
      if (statistics == nullptr || !statistics->HasMinMax()) return std::nullopt;
      std::shared_ptr<arrow::Scalar> low, high;
      if (!parquet::arrow::StatisticsAsScalars(*statistics, &low, &high).ok()) return std::nullopt;
      std::unique_ptr<arrow::ArrayBuilder> builder;
      check_status(arrow::MakeBuilder(memory_pool(), low->type, &builder), path_);
      check_status(builder->AppendScalars({low, high}), path_);
      const std::shared_ptr<arrow::Array> array = value_or_fail(builder->Finish(), path_);
      if (!is_readable(*array->type())) return std::nullopt;
      return to_raw_column(columns_[column], *array, place(columns_[column]));
    });
  }

  bool is_text(std::size_t column) const override { return is_text_[column]; }
  bool is_untyped(std::size_t column) const override { return is_untyped_[column]; }

  void select(std::size_t group) override {
    guarded([&] { start({static_cast<int>(group)}); });
    rows_done_ = 0;
    for (int before = 0; before < static_cast<int>(group); ++before) {
      rows_done_ += metadata().RowGroup(before)->num_rows();
    }
  }

  bool next(RawBatch& batch) override {
    return guarded([&] {
      if (batches_ == nullptr) start_all();
      std::shared_ptr<arrow::RecordBatch> record;
      check_status(batches_->ReadNext(&record), path_);
      if (record == nullptr) return false;
      batch.file = path_.string();
      batch.first_row = rows_done_;
      batch.line_of = nullptr;
      batch.rows = record->num_rows();
      batch.columns.clear();
      for (const std::string& name : columns_) {
        std::shared_ptr<arrow::Array> array = record->GetColumnByName(name);
        if (is_list(*array->type())) array = first_elements(*array);
        batch.columns.push_back(to_raw_column(name, *array, place(name)));
        mark_null_words(nulls_, batch.columns.back());
      }
      rows_done_ += batch.rows;
      return true;
    });
  }

 private:
  const parquet::FileMetaData& metadata() const { return *metadata_; }

  template <typename Body>
  std::invoke_result_t<Body> guarded(const Body& body) const {
    try {
      return as_status(path_, body);
    } catch (const OutOfDecodingMemory&) {
      fail_memory();
    }
  }

  // Names what takes most: a page is decoded as a whole, whatever the size of a batch.
  [[noreturn]] void fail_memory() const {
    if (metadata_ == nullptr)
      fail("{}: its footer needs more memory than --memory allows: increase --memory, or it is damaged",
           path_.string());
    const auto file = value_or_fail(arrow::io::ReadableFile::Open(path_.string()), path_);
    std::int64_t largest = 0;
    std::string column;
    for (int group = 0; group < metadata().num_row_groups(); ++group) {
      for (const int leaf : leaves_) {
        const auto chunk = metadata().RowGroup(group)->ColumnChunk(leaf);
        const std::int64_t begin = chunk->has_dictionary_page()
                                       ? std::min(chunk->dictionary_page_offset(), chunk->data_page_offset())
                                       : chunk->data_page_offset();
        const std::int64_t page = largest_page(*file, begin, begin + chunk->total_compressed_size());
        if (page <= largest) continue;
        largest = page;
        column = root_of(leaf);
      }
    }
    fail(
        "{}: decoding it needs more memory than --memory allows: its largest page, of column \"{}\", takes "
        "{}; "
        "increase --memory, or write the file again with smaller pages and row groups (pyarrow: "
        "data_page_size, row_group_size)",
        path_.string(), column, human_bytes(static_cast<double>(largest)));
  }

  std::string place(const std::string& column) const {
    return fmt::format("{}: column \"{}\"", path_.string(), column);
  }

  void open(const ReadOptions& options) {
    // Pages come through a small buffer: a row group may be as large as the file.
    parquet::ReaderProperties reading(memory_pool());
    reading.enable_buffered_stream();
    reading.set_buffer_size(kStreamBytes);
    reading.set_page_checksum_verification(true);
    check_input_file(path_);
    auto file = value_or_fail(arrow::io::ReadableFile::Open(path_.string()), path_);
    auto parquet_reader = parquet::ParquetFileReader::Open(std::move(file), reading);
    metadata_ = parquet_reader->metadata();

    parquet::ArrowReaderProperties properties(options.threads);
    properties.set_batch_size(std::min(options.batch_rows, rows_that_fit()));
    properties.set_pre_buffer(false);  // it would load all row groups, that is, the whole file
    // INT96 holds days: in nanoseconds of 64 bits the years 9999 and 1 would become others.
    properties.set_coerce_int96_timestamp_unit(arrow::TimeUnit::MICRO);
    for (int leaf = 0; leaf < metadata().num_columns(); ++leaf) {
      if (metadata().schema()->Column(leaf)->physical_type() == parquet::Type::BYTE_ARRAY &&
          metadata().schema()->Column(leaf)->max_repetition_level() == 0 && !is_delta(leaf) &&
          is_compact(leaf)) {
        properties.set_read_dictionary(leaf, true);
      }
    }
    reader_ = value_or_fail(
        parquet::arrow::FileReader::Make(memory_pool(), std::move(parquet_reader), properties), path_);
  }

  std::string root_of(int leaf) const {
    return metadata().schema()->Column(leaf)->path()->ToDotVector().front();
  }

  // Rows of the widest row group that take kBatchBytes.
  std::int64_t rows_that_fit() const {
    constexpr std::int64_t kMostBytes = std::int64_t{1} << 50;  // of a column that exists
    std::vector<int> wanted;
    for (int leaf = 0; leaf < metadata().num_columns(); ++leaf) {
      if (contains(columns_, root_of(leaf))) wanted.push_back(leaf);
    }
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    for (int group = 0; group < metadata().num_row_groups(); ++group) {
      const auto rows = metadata().RowGroup(group);
      std::int64_t bytes = rows->num_rows();
      for (const int leaf : wanted)
        bytes += std::clamp<std::int64_t>(rows->ColumnChunk(leaf)->total_uncompressed_size(), 0, kMostBytes);
      if (rows->num_rows() > 0) least = std::min(least, kBatchBytes / (bytes / rows->num_rows()));
    }
    return std::max<std::int64_t>(1, least);
  }

  // Few bytes for each row: a dictionary of few texts. Arrow would return that of many texts, such as UUIDs
  // or descriptions, again for every batch.
  bool is_compact(int leaf) const {
    constexpr std::int64_t kCodeBytes = 4;
    std::int64_t bytes = 0;
    for (int group = 0; group < metadata().num_row_groups(); ++group)
      bytes += metadata().RowGroup(group)->ColumnChunk(leaf)->total_uncompressed_size();
    return bytes < kCodeBytes * metadata().num_rows();
  }

  // Arrow decodes texts in these encodings only as plain texts, not as a dictionary.
  bool is_delta(int leaf) const {
    for (int group = 0; group < metadata().num_row_groups(); ++group) {
      const auto chunk = metadata().RowGroup(group)->ColumnChunk(leaf);
      for (const parquet::Encoding::type encoding : chunk->encodings()) {
        if (encoding == parquet::Encoding::DELTA_BYTE_ARRAY ||
            encoding == parquet::Encoding::DELTA_LENGTH_BYTE_ARRAY)
          return true;
      }
    }
    return false;
  }

  void find_leaves() {
    std::shared_ptr<arrow::Schema> schema;
    check_status(reader_->GetSchema(&schema), path_);
    find_columns(path_, columns_, schema->field_names());
    for (const std::string& name : columns_) {
      if (schema->GetAllFieldIndices(name).size() > 1)
        fail_usage("{}: the file has more than one column of this name", place(name));
      const arrow::DataType& type = *schema->GetFieldByName(name)->type();
      if (is_list(type)) {
        add_list(name, type);
        continue;
      }
      const int leaf = metadata().schema()->ColumnIndex(name);  // -1: the column is nested.
      if (leaf < 0 || !is_readable(type)) fail_unreadable(name, type);
      leaves_.push_back(leaf);
      is_text_.push_back(is_text_type(type));
      is_untyped_.push_back(type.id() == arrow::Type::NA);
    }
  }

  [[noreturn]] void fail_unreadable(const std::string& name, const arrow::DataType& type) const {
    fail_usage("{}: expected integers, decimals, floats, booleans, strings, dates or timestamps, found {}",
               place(name), type.ToString());
  }

  void add_list(const std::string& name, const arrow::DataType& type) {
    const arrow::DataType& element = *type.field(0)->type();
    if (!contains(lists_, name)) {
      fail_usage(
          "{}: found {}: an item or event has one value of an attribute or context; list = \"first\" there "
          "reads the first element of each list, and other columns cannot be lists",
          place(name), type.ToString());
    }
    if (!is_readable(element)) fail_unreadable(name, type);
    int leaf = 0;
    while (root_of(leaf) != name) ++leaf;
    leaves_.push_back(leaf);
    is_text_.push_back(is_text_type(element));
    is_untyped_.push_back(element.id() == arrow::Type::NA);
  }

  void start_all() {
    std::vector<int> all(static_cast<std::size_t>(metadata().num_row_groups()));
    std::iota(all.begin(), all.end(), 0);
    start(all);
  }

  void start(const std::vector<int>& row_groups) {
    batches_ = value_or_fail(reader_->GetRecordBatchReader(row_groups, leaves_), path_);
  }

  Path path_;
  std::vector<std::string> columns_, lists_, nulls_;
  std::vector<int> leaves_;
  std::vector<bool> is_text_, is_untyped_;
  std::shared_ptr<parquet::FileMetaData> metadata_;
  std::unique_ptr<parquet::arrow::FileReader> reader_;
  std::unique_ptr<arrow::RecordBatchReader> batches_;
  std::int64_t rows_done_ = 0;
};

}  // namespace

std::unique_ptr<ColumnSource> open_parquet(const Path& file, std::span<const std::string> columns,
                                           const ReadOptions& options) {
  return std::make_unique<ParquetSource>(file, columns, options);
}

void set_parquet_memory(std::int64_t bytes) {
  capped_pool() = std::make_unique<arrow::CappedMemoryPool>(arrow::system_memory_pool(), bytes);
}

void set_parquet_threads(int threads) {
  const arrow::Status status = arrow::SetCpuThreadPoolCapacity(threads);
  require(status.ok(), "{}", status.message());
}

}  // namespace hstu
