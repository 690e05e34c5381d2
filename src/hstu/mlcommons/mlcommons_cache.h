// MLCommons' prepared cache of Yambda: the sixteen files of hstu_cache_L<history length>, checked and mapped.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hstu/base/files.h"
#include "hstu/base/npy.h"

namespace hstu {

// A one-dimensional .npy file that a cache must contain.
struct CacheColumn {
  std::string name, type;   // type: NumPy's
  std::int64_t count = -1;  // elements; -1: any number
};

// Compares a column's header with its size, type and count, and returns the count. Error naming the file and
// the difference.
std::int64_t check_cache_column(const Path& folder, const CacheColumn& column);

// N events, U users, A anchors, M = largest user id + 1.
class MlcommonsCache {
 public:
  // Does not read the columns.
  struct Unchecked {};
  MlcommonsCache(const Path& folder, Unchecked);

  // Checks that every file exists and has its type and length. UsageError if the folder is not a complete
  // cache, Error naming a file that does not match.
  explicit MlcommonsCache(const Path& folder);

  const Path& folder() const { return folder_; }
  std::vector<CacheColumn> columns() const;
  std::int64_t users() const { return users_; }
  std::int64_t events() const { return events_; }
  std::int64_t min_history() const {
    return min_history_;
  }  // of the anchors: in the name of positions_L*.npy

  // (U + 1) events of unique_uids[u]: [offsets[u], offsets[u + 1]). Error if user_start and user_end do not
  // divide the events into consecutive users.
  std::vector<std::int64_t> user_offsets() const;

  Path file(const std::string& name) const { return folder_ / name; }
  Path positions_file() const { return folder_ / positions_; }
  // Absent until the reference has trained from the cache for the first time.
  bool has_anchor_times() const { return !anchor_times_.empty(); }
  Path anchor_times_file() const { return folder_ / anchor_times_; }

 private:
  void read_store_meta();
  void find_positions();
  void check_files() const;

  Path folder_;
  std::int64_t events_ = 0, users_ = 0, min_history_ = 0;
  // full_positions_: of min_history = history length, if positions_ has another; "": it is the same
  std::string positions_, full_positions_, anchor_times_;
};

}  // namespace hstu
