#include "hstu/rows/row_file.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <string>
#include <system_error>
#include <vector>

#include <dlfcn.h>
#include <stdlib.h>

#include "hstu/base/error.h"
#include "hstu/base/threads.h"
#include "hstu/rows/rocksdb/calls.h"
#include "hstu/rows/row_storage.h"

namespace hstu {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kRowsOfACall = 256;
constexpr std::size_t kRowsOfABlock = 1 << 14;
constexpr const char* kPrefix = "hstu-rows-";
constexpr const char* kLock = "in-use";

const HstuRocksdbCalls& load_rocksdb() {
  const Path folder = fs::read_symlink("/proc/self/exe").parent_path();
  void* library = nullptr;
  for (const char* place : {"libhstu_rocksdb.so", "../lib/libhstu_rocksdb.so"})
    if (library == nullptr) library = ::dlopen((folder / place).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    fail_usage(
        "place = \"disk\" needs RocksDB, and {} cannot be loaded: {}. Install the package librocksdb-dev and "
        "build again, or choose another place",
        (folder / "libhstu_rocksdb.so").string(), ::dlerror());
  const auto calls = reinterpret_cast<decltype(&hstu_rocksdb_calls)>(::dlsym(library, "hstu_rocksdb_calls"));
  check(calls != nullptr && calls()->interface == HSTU_ROCKSDB_INTERFACE,
        "libhstu_rocksdb.so is of another version of hstu: build both again");
  return *calls();
}

// A process that made a folder holds its lock until it ends.
void remove_what_ended_processes_left(const Path& folder) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (!entry.is_directory() || !entry.path().filename().string().starts_with(kPrefix)) continue;
    std::error_code ignored;  // another user's
    try {
      if (FileLock(entry.path() / kLock).held()) fs::remove_all(entry.path(), ignored);
    } catch (const Error&) {  // as above
    }
  }
}

Path new_folder(const Path& folder) {
  std::string name = (folder / (std::string(kPrefix) + "XXXXXX")).string();
  check(::mkdtemp(name.data()) != nullptr, "cannot make a folder for rows in {}: {}", folder.string(),
        std::strerror(errno));
  return name;
}

// body(first, slots, rows) for blocks of `slots`, with memory for their rows.
template <typename Body>
void for_blocks(std::span<const std::int64_t> slots, std::int64_t width, const Body& body) {
  std::vector<float> memory(std::min(kRowsOfABlock, slots.size()) * static_cast<std::size_t>(width));
  std::vector<float*> rows;
  for (float* row = memory.data(); row < memory.data() + memory.size(); row += width) rows.push_back(row);
  for (std::size_t first = 0; first < slots.size(); first += kRowsOfABlock) {
    const auto some = slots.subspan(first, std::min(kRowsOfABlock, slots.size() - first));
    body(first, some, std::span<float* const>(rows).first(some.size()));
  }
}

}  // namespace

RowFile::RowFile(const Path& folder, std::int64_t width) : width_(width), rocksdb_(load_rocksdb()) {
  std::error_code error;
  fs::create_directories(folder, error);
  check(fs::is_directory(folder), "cannot make the folder {}: {}", folder.string(), error.message());
  FileLock making(folder / "hstu-rows.lock");  // a folder is made and locked at once
  making.wait();
  remove_what_ended_processes_left(folder);
  folder_ = new_folder(folder);
  lock_ = std::make_unique<FileLock>(folder_ / kLock);
  const char* const message = rocksdb_.open((folder_ / "rocksdb").c_str(), &database_);
  if (message == nullptr) return;
  const std::string why = message;
  fs::remove_all(folder_, error);
  fail("cannot keep rows in {}: {}", folder_.string(), why);
}

RowFile::~RowFile() {
  rocksdb_.close(database_);
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

template <typename Value, typename Call>
void RowFile::by_blocks(std::span<const std::int64_t> slots, std::span<Value* const> rows, const char* what,
                        const Call& call) const {
  std::vector<std::int64_t> order(slots.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return slots[static_cast<std::size_t>(a)] < slots[static_cast<std::size_t>(b)];
  });
  std::atomic<bool> failed = false;
  std::string why;
  parallel_blocks(std::ssize(slots), kRowsOfACall, [&](std::int64_t begin, std::int64_t end) {
    std::vector<std::uint64_t> keys;
    std::vector<Value*> values;
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t row = order[static_cast<std::size_t>(i)];
      keys.push_back(static_cast<std::uint64_t>(slots[static_cast<std::size_t>(row)]));
      values.push_back(rows[static_cast<std::size_t>(row)]);
    }
    const char* const message = failed ? nullptr : call(keys, values);
    if (message != nullptr && !failed.exchange(true)) why = message;
  });
  check(!failed, "rows of a table cannot be {} {}: {}. Is the disk full?", what, folder_.string(), why);
}

void RowFile::read(std::span<const std::int64_t> slots, std::span<float* const> rows) const {
  by_blocks(slots, rows, "read from", [&](const auto& keys, const std::vector<float*>& values) {
    std::vector<char*> bytes(values.size());
    std::transform(values.begin(), values.end(), bytes.begin(),
                   [](float* value) { return reinterpret_cast<char*>(value); });
    return rocksdb_.read(database_, keys.size(), keys.data(),
                         static_cast<std::size_t>(width_) * sizeof(float), bytes.data());
  });
}

void RowFile::write(std::span<const std::int64_t> slots, std::span<const float* const> rows) {
  by_blocks(slots, rows, "written to", [&](const auto& keys, const std::vector<const float*>& values) {
    std::vector<const char*> bytes(values.size());
    std::transform(values.begin(), values.end(), bytes.begin(),
                   [](const float* value) { return reinterpret_cast<const char*>(value); });
    return rocksdb_.write(database_, keys.size(), keys.data(),
                          static_cast<std::size_t>(width_) * sizeof(float), bytes.data());
  });
}

void RowFile::read_each(std::span<const std::int64_t> slots,
                        const std::function<void(std::size_t, const float*)>& use) const {
  for_blocks(slots, width_, [&](std::size_t first, auto some, std::span<float* const> rows) {
    read(some, rows);
    for_rows(rows.size(), width_, [&](std::size_t i) { use(first + i, rows[i]); });
  });
}

void RowFile::write_each(std::span<const std::int64_t> slots,
                         const std::function<void(std::size_t, float*)>& fill) {
  for_blocks(slots, width_, [&](std::size_t first, auto some, std::span<float* const> rows) {
    for_rows(rows.size(), width_, [&](std::size_t i) { fill(first + i, rows[i]); });
    write(some, {rows.data(), rows.size()});
  });
}

}  // namespace hstu
