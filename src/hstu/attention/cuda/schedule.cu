#include <algorithm>

#include "hstu/attention/cuda/launch.cuh"
#include "hstu/attention/cuda/ptx.cuh"
#include "hstu/attention/cuda/schedule.h"

namespace hstu::cuda {
namespace {

constexpr int kThreads = 1024;
constexpr int kCounters = 8;  // of 4 bytes
constexpr int kHeader = 4 * (kCounters + kMostWorkers);
// The sum of `value` over the threads before this one; `all` is the sum over all of them.
__device__ int sum_before(int value, int& all) {
  __shared__ int warps[32];
  const int t = static_cast<int>(threadIdx.x), lane = t % 32;
  int sum = value;
  for (int step = 1; step < 32; step *= 2) {
    const int before = __shfl_up_sync(0xffffffffu, sum, step);
    if (lane >= step) sum += before;
  }
  if (lane == 31) warps[t / 32] = sum;
  __syncthreads();
  int total = warps[lane];
  for (int step = 1; step < 32; step *= 2) {
    const int before = __shfl_up_sync(0xffffffffu, total, step);
    if (lane >= step) total += before;
  }
  all = __shfl_sync(0xffffffffu, total, 31);
  const int before = __shfl_up_sync(0xffffffffu, total, 1);
  return sum - value + (t < 32 ? 0 : __shfl_sync(0xffffffffu, before, t / 32));
}

// TileOrder in heads, for heads of so many tiles.
struct Groups {
  int heads, last_begin;  // of a group; of the class, where the last group begins
  __device__ Groups(const TileOrder& order, int tiles, int class_heads)
      : heads(max(1, order.group_tiles / tiles)),
        last_begin(max(0, class_heads - max(1, order.last_tiles / tiles)) / heads * heads) {}
};

// Samples fall into kThreads classes by their number of tiles, most tiles first (class 0 holds all that are
// longer).
__device__ void write_schedule(const std::int64_t* offsets, int samples, int heads, int rows, TileOrder order,
                               Schedule schedule) {
  __shared__ int items[kThreads], begin[kThreads], taken[kThreads];
  struct Placed {
    int begin, length, tiles, place;  // place: of the sample's first head among the heads of its class
  };
  __shared__ Placed placed[kThreads];
  const int t = static_cast<int>(threadIdx.x);
  const auto tiles_of = [&](int length) { return (length + rows - 1) / rows; };
  const auto class_of = [&](int tiles) { return kThreads - 1 - min(tiles, kThreads - 1); };
  const auto length_of = [&](int b) { return static_cast<int>(offsets[b + 1] - offsets[b]); };
  items[t] = taken[t] = 0;
  if (t < kMostWorkers) schedule.rounded[t] = 0;
  __syncthreads();
  for (int b = t; b < samples; b += kThreads) {
    const int tiles = tiles_of(length_of(b));
    if (tiles > 0) atomicAdd(&items[class_of(tiles)], tiles * heads);
  }
  __syncthreads();
  int all = 0;
  begin[t] = sum_before(items[t], all);
  if (t == 0) {
    schedule.counters[0] = 0;
    schedule.counters[1] = all;
    schedule.counters[2] = 0;
  }
  for (int from = 0; from < samples; from += kThreads) {
    __syncthreads();
    const int count = min(kThreads, samples - from);
    if (t < count) {
      const int length = length_of(from + t), tiles = tiles_of(length), of = class_of(tiles);
      placed[t] = {static_cast<int>(offsets[from + t]), length, tiles,
                   tiles == 0 ? 0 : atomicAdd(&taken[of], of == 0 ? tiles * heads : heads)};
    }
    __syncthreads();
    const int lane = t % 32;
    for (int b = t / 32; b < count; b += kThreads / 32) {
      const Placed p = placed[b];
      if (p.tiles == 0) continue;
      const int of = class_of(p.tiles);
      const Groups groups(order, p.tiles, items[of] / p.tiles);
      for (int i = lane; i < p.tiles * heads; i += 32) {
        const int head = i % heads, rank = i / heads, at = p.place + head;
        // Class 0 has samples of several sizes: head by head.
        int place = p.place + head * p.tiles + rank, first = place - rank;
        if (of > 0) {
          const int group = at < groups.last_begin ? at / groups.heads * groups.heads : groups.last_begin;
          const int size = at < groups.last_begin ? groups.heads : items[of] / p.tiles - groups.last_begin;
          place = group * p.tiles + rank * size + at - group;
          first = at * p.tiles;
        }
        const int tile = order.last_first ? p.tiles - 1 - rank : rank;
        schedule.items[begin[of] + place] = {
            from + b,
            static_cast<std::uint32_t>(head) << kTileBits | static_cast<std::uint32_t>(tile),
            p.begin,
            p.length,
            begin[of] + first,
            0,
            0};
      }
    }
  }
}

struct ScheduleArguments {
  const std::int64_t* offsets;
  int samples, heads, rows;
  TileOrder order;
  Schedule schedule;
  uint4* zeroed;
  std::int64_t zeroed_count;
};

// Block 0 writes the schedule, the others the zeros.
__global__ void __launch_bounds__(kThreads) schedule_kernel(const __grid_constant__ ScheduleArguments a) {
  wait_for_previous_launch();  // it may still read the memory that is written here
  let_next_launch_begin();
  if (blockIdx.x == 0) {
    write_schedule(a.offsets, a.samples, a.heads, a.rows, a.order, a.schedule);
  } else {
    const std::int64_t stride = static_cast<std::int64_t>(gridDim.x - 1) * kThreads;
    std::int64_t i = static_cast<std::int64_t>(blockIdx.x - 1) * kThreads + threadIdx.x;
    for (; i < a.zeroed_count; i += stride) a.zeroed[a.zeroed_count - 1 - i] = make_uint4(0, 0, 0, 0);
  }
}

}  // namespace

std::int64_t schedule_items(const AttentionProblem& p, int rows) {
  return p.heads * (p.tokens / rows + p.samples);
}

std::int64_t schedule_bytes(const AttentionProblem& p, int rows) {
  return kHeader + schedule_items(p, rows) * static_cast<std::int64_t>(sizeof(ScheduleItem));
}

Schedule schedule_at(void* memory) {
  auto* const counters = static_cast<std::int32_t*>(memory);
  return {counters, counters + kCounters,
          reinterpret_cast<ScheduleItem*>(static_cast<char*>(memory) + kHeader)};
}

void make_schedule(const AttentionProblem& p, int rows, const TileOrder& order, const Schedule& schedule,
                   void* zeroed, std::int64_t zeroed_bytes, cudaStream_t stream) {
  const std::int64_t count = zeroed_bytes / 16;
  const auto blocks =
      static_cast<int>(1 + std::min<std::int64_t>((count + 4 * kThreads - 1) / (4 * kThreads), 528));
  const ScheduleArguments arguments{p.offsets,
                                    static_cast<int>(p.samples),
                                    static_cast<int>(p.heads),
                                    rows,
                                    order,
                                    schedule,
                                    static_cast<uint4*>(zeroed),
                                    count};
  launch_early(schedule_kernel, arguments, blocks, 1, kThreads, 0, stream, "attention schedule");
}

}  // namespace hstu::cuda
