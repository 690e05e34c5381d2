// Generated folders read back with Arrow, for tests.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <arrow/api.h>
#include <arrow/io/file.h>
#include <gtest/gtest.h>
#include <parquet/arrow/reader.h>

#include "hstu/base/files.h"
#include "hstu/synthetic/generate_yambda.h"
#include "temporary_folder.h"

namespace hstu {

inline GenerateOptions small_options(const Path& output, std::uint64_t seed = 1) {
  GenerateOptions options;
  options.users = 400;
  options.days = 12;
  options.items = 1500;
  options.seed = seed;
  options.output = output;
  return options;
}

// A folder name of this test's own that does not exist.
inline Path fresh_folder(const std::string& name) {
  Path path = TemporaryFolders::parent() / name;
  std::filesystem::create_directories(TemporaryFolders::parent());
  std::filesystem::remove_all(path);
  return path;
}

// One chunk a column.
inline std::shared_ptr<arrow::Table> read_table(const Path& path) {
  const auto file = arrow::io::ReadableFile::Open(path.string()).ValueOrDie();
  const auto reader = parquet::arrow::OpenFile(file, arrow::default_memory_pool()).ValueOrDie();
  return reader->ReadTable().ValueOrDie()->CombineChunks().ValueOrDie();
}

template <typename ArrowType>
std::vector<typename ArrowType::c_type> values(const arrow::Table& table, const std::string& column) {
  const auto array = std::static_pointer_cast<typename arrow::TypeTraits<ArrowType>::ArrayType>(
      table.GetColumnByName(column)->chunk(0));
  std::vector<typename ArrowType::c_type> result;
  for (std::int64_t i = 0; i < array->length(); ++i) result.push_back(array->Value(i));
  return result;
}

// multi_event.parquet as columns; nulls as 0 with `valid` 0.
struct Events {
  explicit Events(const Path& folder) : table(read_table(folder / "multi_event.parquet")) {
    uid = values<arrow::UInt32Type>(*table, "uid");
    timestamp = values<arrow::UInt32Type>(*table, "timestamp");
    item_id = values<arrow::UInt32Type>(*table, "item_id");
    ratio = values<arrow::UInt16Type>(*table, "played_ratio_pct");
    const auto column = table->GetColumnByName("event_type")->chunk(0);
    const auto& types = static_cast<const arrow::DictionaryArray&>(*column);
    const auto& names = static_cast<const arrow::StringArray&>(*types.dictionary());
    for (std::int64_t i = 0; i < types.length(); ++i) type.push_back(names.GetString(types.GetValueIndex(i)));
  }
  std::size_t size() const { return uid.size(); }
  bool is_listen(std::size_t i) const { return type[i] == "listen"; }
  bool is_listen_plus(std::size_t i) const { return is_listen(i) && ratio[i] >= 50; }

  std::shared_ptr<arrow::Table> table;
  std::vector<std::uint32_t> uid, timestamp, item_id;
  std::vector<std::uint16_t> ratio;
  std::vector<std::string> type;
};

// One small log for all tests that only read.
struct SharedLog {
  Path folder = fresh_folder("shared_" + std::to_string(getpid()));
  Truth truth = generate_yambda(small_options(folder));
  Events events{folder};
  ~SharedLog() { std::filesystem::remove_all(folder); }
};
inline const SharedLog& shared_log() {
  static const SharedLog log;
  return log;
}

}  // namespace hstu
