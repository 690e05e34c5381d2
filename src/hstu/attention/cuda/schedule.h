// The list of tiles that a persistent kernel takes one after the other: longest samples first, and of each
// head its longest tiles first, so that the blocks finish together. Nothing is listed for rows that do not
// exist.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "hstu/attention/cuda/limits.h"
#include "hstu/attention/problem.h"

namespace hstu::cuda {

struct alignas(16) ScheduleItem {
  std::int32_t sample;
  std::uint32_t head_and_tile;  // head << kTileBits | tile
  std::int32_t begin, length;   // of the sample
};
inline constexpr int kBackwardTile = 128;  // keys of an item of the backward pass

struct Schedule {
  std::int32_t* counters;  // [0] items taken, [1] items in all
  ScheduleItem* items;
};

enum class TileOrder { first_to_last, last_to_first };

// Bytes of a schedule of tiles of `rows` rows, aligned to 16.
std::int64_t schedule_bytes(const AttentionProblem& problem, int rows);
Schedule schedule_at(void* memory);

// Writes the schedule and, meanwhile, zeros into `zeroed` (multiple of 16 bytes).
void make_schedule(const AttentionProblem& problem, int rows, TileOrder order, const Schedule& schedule,
                   void* zeroed, std::int64_t zeroed_bytes, cudaStream_t stream);

}  // namespace hstu::cuda
