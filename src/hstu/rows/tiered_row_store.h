// TieredRowStore: the host knows the rows of a table (RowDirectory) and where each of them is. Either every
// row is in the memory of a device, its slot being its line there; or all rows are below (rows_below.h), and
// a cache in the device's memory has those that are in use (docs/tables.md, decision 43). Rows are read and
// updated on the device alone, by line (table_lines.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "hstu/device/transfer_blocks.h"
#include "hstu/rows/placement.h"
#include "hstu/rows/row_cache.h"
#include "hstu/rows/row_directory.h"
#include "hstu/rows/row_file.h"
#include "hstu/rows/row_format.h"
#include "hstu/rows/row_lines.h"
#include "hstu/rows/row_storage.h"
#include "hstu/rows/rows_below.h"

namespace hstu {

// Host memory for `rows` rows, at most: the directory and, behind a cache of `cache_rows` (0: none), the
// rows.
constexpr std::int64_t placed_host_bytes(const RowShape& shape, std::int64_t rows, std::int64_t cache_rows) {
  const std::int64_t directory = RowDirectory::most_bytes(rows);
  if (cache_rows == 0) return directory;
  const std::int64_t width = stored_floats(shape);
  const int shift = RowStorage::chunk_shift(width, below_chunk_bytes(width, shape.rows));
  const std::int64_t chunks = (rows + (std::int64_t{1} << shift) - 1) >> shift;
  return directory + ((chunks * width * std::int64_t{sizeof(float)}) << shift) +
         RowCache::most_bytes(rows, cache_rows);
}

// The lines of a cache that grows, when a step has had `step_rows` rows.
constexpr std::int64_t grown_lines(const RowShape& shape, std::int64_t step_rows) {
  constexpr std::int64_t kLeast = 1024;
  return std::min(std::max(step_rows + step_rows / 8, kLeast), shape.rows);
}

class TieredRowStore final : public RowsById {
 public:
  // `lines`: its rows, none so far, in the memory of `where`; they must outlive it.
  TieredRowStore(const PlacedTable& table, RowLines& lines, const Context& where);

  std::int64_t rows() const override { return directory_.rows(); }
  std::int64_t bytes() const;
  bool contains(std::int64_t id) const override { return directory_.find(id) >= 0; }
  void create_slots(std::span<const std::int64_t> ids, std::int64_t* slots) override;
  // slots (n) of `ids` (n) and their lines (n), as lines_of() gives them.
  void find(std::span<const std::int64_t> ids, std::int64_t* slots, std::int64_t* lines) const;
  // slots (n) of `ids` (n, each once), whose rows this step reads and updates, and their lines (n), or
  // kAbsentRow and kNullRow. With `creates`, missing rows are created. They are changed, from then on. Throws
  // CacheTooSmall if the rows of the step do not fit a cache.
  void use(std::span<const std::int64_t> ids, bool creates, std::int64_t* slots, std::int64_t* lines);
  // Rows of `ids` that exist come into the cache, where there is room, while the device computes.
  void prefetch(std::span<const std::int64_t> ids);
  void set_initial_bound(float bound) override;
  std::vector<RowPlace> places_by_id() const override { return directory_.places_by_id(); }
  std::int64_t begin_changes() override { return directory_.begin_changes(); }
  std::vector<RowPlace> changed_by_id(std::int64_t since) const override {
    return directory_.changed_by_id(since);
  }
  void read(std::span<const std::int64_t> slots, float* values, float* state) const override;
  void import_rows(std::span<const std::int64_t> ids, const float* values, const float* state) override;

  // lines (n) of `slots` (n), which may be the same memory; kElsewhere for rows that are below,
  // kAbsentRow for those that have their initial value alone.
  static constexpr std::int64_t kElsewhere = -4;
  void lines_of(std::span<const std::int64_t> slots, std::int64_t* lines) const;
  // values (m, D) of those that are below, into transfer_memory() or other host memory.
  void read_below(std::span<const std::int64_t> slots, float* values) const;

  bool has_cache() const { return cache_.has_value(); }
  // After the updates of a step: rows that it has used may leave the cache.
  void end_step();
  CacheCounts counts() const;

 private:
  void grow_lines();
  template <typename Look>
  RowCache::Found look_up(std::span<const std::int64_t> ids, std::int64_t* slots, const Look& look) const;
  void touch(std::span<const std::int64_t> slots);
  void create_absent(std::span<const std::int64_t> ids, std::span<const std::int64_t> places,
                     std::int64_t* slots);
  void make_room(std::int64_t rows);
  void move(const RowCache::Moves& moves, Pace pace) const;
  void flush() const;

  RowShape shape_;
  RowFormat format_;
  CacheSize size_;  // at first
  std::shared_ptr<RowDirectory> rows_;
  RowDirectory& directory_;
  RowLines& lines_;
  std::int64_t room_ = 0;  // lines, without a cache
  // Reading a checkpoint writes changed lines back, which changes what is where, and no row.
  mutable std::optional<RowCache> cache_;
  std::unique_ptr<RowsBelow> below_;        // of a cache: all rows
  std::unique_ptr<LineExchange> exchange_;  // ends first: it waits for rows that are on their way
  mutable TransferBlocks blocks_;
};

}  // namespace hstu
