// RowFile: rows by slot on a disk, for tables that are larger than the host's memory. They are scratch: what
// a run needs again is in its checkpoints. RocksDB keeps them, in a library of its own (rocksdb/calls.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "hstu/base/file_lock.h"
#include "hstu/base/files.h"

struct HstuRocksdb;
struct HstuRocksdbCalls;

namespace hstu {

class RowFile {
 public:
  // Of rows of `width` floats, in a new folder of `folder`. Removes the folders that processes left there
  // which have ended. Throws UsageError if RocksDB is missing, Error if the folder cannot be written.
  RowFile(const Path& folder, std::int64_t width);
  ~RowFile();  // removes its folder
  RowFile(const RowFile&) = delete;
  RowFile& operator=(const RowFile&) = delete;

  // rows (n) of `width` floats each at `slots` (n), each once, by all threads. Throws Error naming the
  // folder, usually because the disk is full. Rows that are read have been written.
  void read(std::span<const std::int64_t> slots, std::span<float* const> rows) const;
  void write(std::span<const std::int64_t> slots, std::span<const float* const> rows);
  // use(i, row) and fill(i, row) for each of `slots`, by all threads.
  void read_each(std::span<const std::int64_t> slots,
                 const std::function<void(std::size_t, const float*)>& use) const;
  void write_each(std::span<const std::int64_t> slots, const std::function<void(std::size_t, float*)>& fill);

  std::int64_t width() const { return width_; }
  const Path& folder() const { return folder_; }

 private:
  // call(keys, values) of each block of slots, in ascending order, with the addresses of their rows.
  template <typename Value, typename Call>
  void by_blocks(std::span<const std::int64_t> slots, std::span<Value* const> rows, const char* what,
                 const Call& call) const;

  std::int64_t width_;
  const HstuRocksdbCalls& rocksdb_;
  Path folder_;
  std::unique_ptr<FileLock> lock_;  // held: the folder is in use
  HstuRocksdb* database_ = nullptr;
};

}  // namespace hstu
