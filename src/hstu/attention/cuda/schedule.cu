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

// Adds `amount` to the class's counter and gives what it was before this thread. Lanes of one class other
// than 0, whose amounts are equal, do it together.
__device__ int claim(int* counters, int of, int amount) {
  const unsigned same = __match_any_sync(0xffffffffu, of == 0 ? -1 - static_cast<int>(threadIdx.x) : of);
  const int leader = __ffs(static_cast<int>(same)) - 1, lane = static_cast<int>(threadIdx.x) % 32;
  int before = lane == leader ? atomicAdd(&counters[of], __popc(same) * amount) : 0;
  before = __shfl_sync(0xffffffffu, before, leader);
  return before + __popc(same & ((1u << lane) - 1)) * amount;
}

// Samples fall into kThreads classes by their number of tiles, most tiles first: class c has kThreads - 1 -
// c, class 0 all that have more, which are taken head by head.
__device__ void write_schedule(const std::int64_t* offsets, int samples, int heads, int rows, TileOrder order,
                               Schedule schedule) {
  // Of each class: samples, or tiles of one head in class 0; the same of those placed already; the first
  // item.
  __shared__ int counts[kThreads], taken[kThreads], begin[kThreads];
  struct Placed {
    int begin, length, tiles, before;  // before: `taken` when this sample was placed
  };
  __shared__ Placed placed[kThreads];
  const int t = static_cast<int>(threadIdx.x);
  const auto class_of = [&](int tiles) { return kThreads - 1 - min(tiles, kThreads - 1); };
  const auto sample_at = [&](int b) -> Placed {
    if (b >= samples) return {0, 0, 0, 0};
    const std::int64_t first = offsets[b];
    const int length = static_cast<int>(offsets[b + 1] - first);
    return {static_cast<int>(first), length, (length + rows - 1) / rows, 0};
  };
  const auto place = [&](int* counters, const Placed& p) {
    const int of = class_of(p.tiles);
    return claim(counters, of, of == 0 ? p.tiles : 1);
  };
  counts[t] = taken[t] = 0;
  if (t < kMostWorkers) schedule.rounded[t] = 0;
  __syncthreads();
  for (int from = 0; from < samples; from += kThreads) place(counts, sample_at(from + t));
  __syncthreads();
  int all = 0;
  begin[t] = sum_before(counts[t] * heads * (t == 0 ? 1 : kThreads - 1 - t), all);
  if (t == 0) {
    schedule.counters[0] = 0;
    schedule.counters[1] = all;
    schedule.counters[2] = 0;
  }
  for (int from = 0; from < samples; from += kThreads) {
    __syncthreads();
    Placed own = sample_at(from + t);
    own.before = place(taken, own);
    placed[t] = own;
    __syncthreads();
    // Eight threads write the items of one head.
    for (int i = t / 8; i < min(kThreads, samples - from) * heads; i += kThreads / 8) {
      const int b = i / heads, head = i % heads;
      const Placed p = placed[b];
      if (p.tiles == 0) continue;
      const int of = class_of(p.tiles);
      int first = p.before * heads + head * p.tiles, base = first, stride = 1;
      if (of > 0) {
        const int at = p.before * heads + head, class_heads = counts[of] * heads;
        const Groups groups(order, p.tiles, class_heads);
        const bool last = at >= groups.last_begin;
        const int group = last ? groups.last_begin : at / groups.heads * groups.heads;
        first = at * p.tiles;
        base = group * p.tiles + at - group;
        stride = last ? class_heads - group : groups.heads;
      }
      for (int rank = t % 8; rank < p.tiles; rank += 8) {
        const int tile = order.last_first ? p.tiles - 1 - rank : rank;
        schedule.items[begin[of] + base + rank * stride] = {
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
