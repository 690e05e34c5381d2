// The tables that the reference prepares beside its caches.
#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include <arrow/api.h>
#include <parquet/arrow/reader.h>
#include <parquet/exception.h>

#include "hstu/base/error.h"
#include "hstu/base/text.h"
#include "hstu/mlcommons/mlcommons_cache.h"
#include "hstu/mlcommons/verify_mlcommons.h"

namespace hstu {
namespace {

constexpr const char* kSessions = "train_sessions.parquet";
constexpr const char* kIndex = "session_index.parquet";
constexpr const char* kTest = "test_events.parquet";

struct TableSize {
  std::int64_t rows = 0, elements = 0;  // elements: of the lists of a column, if there is one
};

void check_read(const arrow::Status& status) {
  check(status.ok(), "cannot be read as Parquet: {}", status.message());
}

template <typename T>
T read_or_fail(arrow::Result<T> result) {
  check_read(result.status());
  return std::move(result).ValueUnsafe();
}

std::int64_t elements_of(const arrow::Array& lists) {
  if (lists.type_id() == arrow::Type::LARGE_LIST) {
    const auto& list = static_cast<const arrow::LargeListArray&>(lists);
    return list.value_offset(list.length()) - list.value_offset(0);
  }
  check(lists.type_id() == arrow::Type::LIST, "expected lists, found {}", lists.type()->ToString());
  const auto& list = static_cast<const arrow::ListArray&>(lists);
  return list.value_offset(list.length()) - list.value_offset(0);
}

// Reads the whole table. Error if it is damaged or has no column `lists` ("": none is wanted).
TableSize read_table(const Path& file, const std::string& lists) {
  constexpr std::int64_t kBatchRows = 1 << 14;
  parquet::arrow::FileReaderBuilder builder;
  check_read(builder.OpenFile(file.string()));
  parquet::ArrowReaderProperties properties;
  properties.set_batch_size(kBatchRows);
  properties.set_pre_buffer(false);
  builder.properties(properties);
  const std::unique_ptr<parquet::arrow::FileReader> reader = read_or_fail(builder.Build());
  const auto batches = read_or_fail(reader->GetRecordBatchReader());
  TableSize size;
  for (std::shared_ptr<arrow::RecordBatch> batch;;) {
    check_read(batches->ReadNext(&batch));
    if (batch == nullptr) return size;
    size.rows += batch->num_rows();
    if (lists.empty()) continue;
    const std::shared_ptr<arrow::Array> column = batch->GetColumnByName(lists);
    check(column != nullptr, "expected a column \"{}\", found none", lists);
    size.elements += elements_of(*column);
  }
}

void compare(const char* what, std::int64_t found, std::int64_t expected) {
  check(found == expected, "expected {} {}, found {}", with_separators(expected), what,
        with_separators(found));
}

}  // namespace

std::vector<FileVerdict> verify_mlcommons_tables(const Path& folder, const Path& cache) {
  std::vector<FileVerdict> verdicts;
  const std::array tables{kSessions, kIndex, kTest};
  const auto exists = [&](const char* name) { return std::filesystem::exists(folder / name); };
  if (std::none_of(tables.begin(), tables.end(), exists)) return verdicts;  // the caches alone were copied
  std::int64_t users = 0, events = 0;
  try {
    const MlcommonsCache sizes(cache, MlcommonsCache::Unchecked{});
    users = sizes.users();
    events = sizes.events();
  } catch (const Error&) {  // verdicts about the cache say so
    return verdicts;
  }
  const auto verify = [&](const char* name, const char* compared, const auto& check_it) {
    if (!exists(name)) {
      verdicts.push_back({.file = name,
                          .status = FileVerdict::Status::kMissing,
                          .remark = "the reference prepares it beside the cache"});
      return;
    }
    verdicts.push_back(verdict_of(name, compared, [&] {
      try {
        check_it(folder / name);
      } catch (const parquet::ParquetException& error) {
        fail("cannot be read as Parquet: {}", error.what());
      }
    }));
  };
  verify(kSessions, "read; as many events as the cache",
         [&](const Path& file) { compare("events", read_table(file, "item_ids").elements, events); });
  verify(kIndex, "read; as many users as the cache",
         [&](const Path& file) { compare("users", read_table(file, "").rows, users); });
  verify(kTest, "read", [&](const Path& file) { read_table(file, ""); });
  return verdicts;
}

}  // namespace hstu
