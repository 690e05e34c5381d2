// RowsBelow: the rows of a table below its cache, with their state, by slot: in host memory, in a file, or in
// a file below a cache of its own, which is in host memory. A row is stored_floats() floats.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "hstu/rows/line_exchange.h"
#include "hstu/rows/placement.h"
#include "hstu/rows/row_cache.h"
#include "hstu/rows/row_directory.h"
#include "hstu/rows/row_file.h"

namespace hstu {

// The slots of rows that come into lines, and of rows that leave them, in the order of the moves.
struct MovedSlots {
  std::vector<std::int64_t> in, out;

  explicit MovedSlots(std::span<const RowCache::Move> moves) {
    for (const RowCache::Move& move : moves) {
      if (move.in >= 0) in.push_back(move.in);
      if (move.out >= 0) out.push_back(move.out);
    }
  }
};

class RowsBelow {
 public:
  virtual ~RowsBelow() = default;

  virtual std::int64_t bytes() const = 0;  // of host memory
  // Slots that the directory has given to rows which are not here yet.
  virtual void add(std::span<const std::int64_t> /*slots*/) {}
  // Exchanges rows with lines. They are here, or there, when the exchange has settled.
  virtual void move(std::span<const RowCache::Move> moves, Pace pace) = 0;
  // Brings rows that the next steps will move where they can be read sooner.
  virtual void prefetch(std::span<const std::int64_t> /*slots*/) {}
  // use(i, row) and fill(i, row) for each of `slots`, by all threads. Rows that are read have been here.
  virtual void read(std::span<const std::int64_t> slots,
                    const std::function<void(std::size_t, const float*)>& use) = 0;
  virtual void write(std::span<const std::int64_t> slots,
                     const std::function<void(std::size_t, float*)>& fill) = 0;
  // Of a cache here.
  virtual std::optional<CacheCounts> counts() const { return std::nullopt; }
};

// Rows of `floats` floats below a cache, at most `rows`, are in page-locked memory, which is slow to get in
// small pieces.
constexpr std::int64_t below_chunk_bytes(std::int64_t floats, std::int64_t rows) {
  constexpr std::int64_t kMost = std::int64_t{32} << 20;
  const std::int64_t row = floats * std::int64_t{sizeof(float)};
  return rows < kMost / row ? rows * row : kMost;  // ids may have 63 bits
}

// `directory` and `exchange` must outlive them. Memory is transfer_memory() of `device`.
std::unique_ptr<RowsBelow> rows_in_memory(const RowShape& shape, const RowDirectory& directory, Device device,
                                          LineExchange& exchange);
// For lines in host memory.
std::unique_ptr<RowsBelow> rows_in_file(std::unique_ptr<RowFile> file, LineExchange& exchange);
// `lines` rows in host memory over a file.
std::unique_ptr<RowsBelow> rows_in_cached_file(std::unique_ptr<RowFile> file, std::int64_t lines,
                                               const RowDirectory& directory, Device device,
                                               LineExchange& exchange);

}  // namespace hstu
