// Running counts of every action's events, stored beside the columns: they locate the last c events of a pool
// before a position without reading the events in between.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "hstu/base/checksum.h"
#include "hstu/base/files.h"
#include "hstu/dataset/manifest.h"

namespace hstu {

inline constexpr std::int64_t kPoolBlock = 256;  // events between two stored counts

// (N / 256 + 1, A), A actions in the manifest's order: row b counts the events of all users of a segment
// before its position 256 * b. Any action can be a pool, so each has a column.
class PoolCounts {
 public:
  PoolCounts() = default;
  // `first`: the position of the segment's first event, a multiple of 256.
  PoolCounts(std::span<const std::int64_t> counts, std::int64_t actions, std::int64_t first = 0)
      : counts_(counts), actions_(actions), first_block_(first / kPoolBlock) {}

  std::int64_t first_block() const { return first_block_; }
  std::int64_t end_block() const {
    return first_block_ + static_cast<std::int64_t>(counts_.size()) / actions_;
  }
  // Events of the segment and the action before position block * kPoolBlock; block in [first_block(),
  // end_block()).
  std::int64_t before(std::int64_t block, std::int64_t action) const {
    return counts_[static_cast<std::size_t>((block - first_block_) * actions_ + action)];
  }

 private:
  std::span<const std::int64_t> counts_;
  std::int64_t actions_ = 1;
  std::int64_t first_block_ = 0;
};

// Bit i: action[i] has one of `bits`, which are among bits 0 to 6; i < n <= 64. Processes eight events per
// word, without branches.
inline std::uint64_t events_with(const std::uint8_t* action, std::int64_t n, std::uint8_t bits) {
  constexpr std::uint64_t kOnes = 0x0101010101010101u;
  const std::uint64_t wanted = kOnes * (bits & 0x7fu);
  std::uint64_t mask = 0;
  std::int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    std::uint64_t word;
    std::memcpy(&word, action + i, sizeof word);
    const std::uint64_t present = (((word & wanted) + kOnes * 0x7f) >> 7) & kOnes;  // bit 0 of every byte
    mask |= ((present * 0x0102040810204080u) >> 56) << i;                           // gathered into a byte
  }
  for (; i < n; ++i) mask |= std::uint64_t{(action[i] & bits & 0x7fu) != 0} << i;
  return mask;
}

// Writes pool_counts.npy into a dataset folder while the actions are written.
class PoolCountsWriter {
 public:
  PoolCountsWriter(const Path& folder, const std::vector<ActionBit>& actions);
  // The actions of the next events.
  void append(std::span<const std::uint8_t> action);
  // Ends the file and describes it for the manifest.
  ColumnInfo close();

 private:
  std::string header() const;
  void put_row();

  std::vector<ActionBit> actions_;
  std::vector<std::int64_t> row_;  // events of each action so far
  std::int64_t events_ = 0, largest_ = 0;
  OutputFile file_;
  Checksum checksum_;
};

}  // namespace hstu
