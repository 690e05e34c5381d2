// The list of tiles that a persistent kernel takes one after the other: the longest samples first, and the
// longest tiles of each head first, so that the blocks finish together. The list has no tiles of rows that do
// not exist.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "hstu/attention/cuda/limits.h"
#include "hstu/attention/mask.h"
#include "hstu/attention/problem.h"

namespace hstu::cuda {

struct alignas(32) ScheduleItem {
  std::int32_t sample;
  std::uint32_t head_and_tile;  // head << kTileBits | tile
  std::int32_t begin, length;   // of the sample
  // The number of this head's first tile. Tiles are numbered head by head, heads in the order in which they
  // are taken.
  std::int32_t first;

  HSTU_HOST_DEVICE std::int32_t head() const { return static_cast<std::int32_t>(head_and_tile >> kTileBits); }
  HSTU_HOST_DEVICE std::int32_t tile() const {
    return static_cast<std::int32_t>(head_and_tile & ((1u << kTileBits) - 1));
  }
};
inline constexpr int kBackwardTile = 128;  // keys of an item of the backward pass

struct Schedule {
  std::int32_t* counters;  // [0] items taken, [1] items in all
  ScheduleItem* items;
};

// The order of the tiles of heads of one length. The tiles of a group of heads are handed out together,
// longest tiles first. A group has about as many tiles as the blocks take at once, which spreads their reads
// over time; the last group has more, so that its short tiles fill the gaps at the end. The rows of a group
// should fit the L2 cache. Groups have whole heads.
struct TileOrder {
  bool last_first;  // the last tile of a head is its longest, but for the first if it has contexts
  int group_tiles, last_tiles;  // at least; of the last group: from last_tiles to last_tiles + group_tiles
};

// An upper bound of the items of a schedule of tiles of `rows` rows. schedule_bytes: its bytes, aligned
// to 32.
std::int64_t schedule_items(const AttentionProblem& problem, int rows);
// An upper bound of the tiles of heads that have more than one. No other tile has a lower number
// (ScheduleItem::first).
std::int64_t shared_tiles(const AttentionProblem& problem, int rows);
std::int64_t schedule_bytes(const AttentionProblem& problem, int rows);
Schedule schedule_at(void* memory);

// Writes the schedule and, meanwhile, zeros into `zeroed` (multiple of 16 bytes).
void make_schedule(const AttentionProblem& problem, int rows, const TileOrder& order,
                   const Schedule& schedule, void* zeroed, std::int64_t zeroed_bytes, cudaStream_t stream);

}  // namespace hstu::cuda
