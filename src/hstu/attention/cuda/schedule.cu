#include <algorithm>

#include "hstu/attention/cuda/schedule.h"
#include "hstu/device/cuda/launch.cuh"
#include "hstu/device/cuda/ptx.cuh"

namespace hstu::cuda {
namespace {

constexpr int kClasses = 1024, kFewThreads = 256, kMostThreads = 1024;
constexpr int kHeader = 32;  // bytes of the counters

// For numbers that are not negative.
__device__ int quotient(int a, int b) {
  return static_cast<int>(static_cast<unsigned>(a) / static_cast<unsigned>(b));
}

// The sum of `value` over the threads of the block before this one; `all` is the sum over all of them.
__device__ int sum_before(int value, int& all) {
  __shared__ int warps[32];
  const int t = static_cast<int>(threadIdx.x), lane = t % 32;
  const int sum = sum_up_to_lane(value);
  if (lane == 31) warps[t / 32] = sum;
  __syncthreads();
  const int total = sum_up_to_lane(lane < static_cast<int>(blockDim.x) / 32 ? warps[lane] : 0);
  all = __shfl_sync(0xffffffffu, total, 31);
  const int before = __shfl_up_sync(0xffffffffu, total, 1);
  return sum - value + (t < 32 ? 0 : __shfl_sync(0xffffffffu, before, t / 32));
}

// TileOrder in heads, for heads of the same number of tiles.
struct Groups {
  int heads, last_begin;  // of a group; of the class, where the last group begins
  Groups() = default;
  __device__ Groups(const TileOrder& order, int tiles, int class_heads)
      : heads(quotient(order.group_tiles + tiles - 1, tiles)),
        last_begin(quotient(max(0, class_heads - max(1, quotient(order.last_tiles, tiles))), heads) * heads) {
  }
};

// Adds `amount` to the counter of the class and returns its value before this thread. Lanes of one class
// other than 0, whose amounts are equal, do it together.
__device__ int claim(int* counters, int of, int amount) {
  const unsigned same = __match_any_sync(0xffffffffu, of == 0 ? -1 - static_cast<int>(threadIdx.x) : of);
  const int leader = __ffs(static_cast<int>(same)) - 1, lane = static_cast<int>(threadIdx.x) % 32;
  int before = lane == leader ? atomicAdd(&counters[of], __popc(same) * amount) : 0;
  before = __shfl_sync(0xffffffffu, before, leader);
  return before + __popc(same & ((1u << lane) - 1)) * amount;
}

// This kernel runs before every other, and fetching its code takes longer than running it: loops are not
// unrolled.
//
// Samples belong to kClasses classes by their number of tiles, most tiles first: samples of class c have
// kClasses - 1 - c tiles. Class 0 has all samples with more; they are taken head by head.
__device__ void write_schedule(const std::int64_t* offsets, const std::int32_t* contexts, int samples,
                               int heads, int rows, TileOrder order, Schedule schedule) {
  // For each class: samples, or tiles of one head in class 0; the same for those already placed; the first
  // item.
  __shared__ int counts[kClasses], taken[kClasses], begin[kClasses];
  struct Placed {
    int begin, length, tiles, before;  // before: `taken` when this sample was placed
    Groups groups;                     // of its class
  };
  __shared__ Placed placed[kMostThreads];
  const int t = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  const auto class_of = [&](int tiles) { return kClasses - 1 - min(tiles, kClasses - 1); };
  const auto sample_at = [&](int b) -> Placed {
    if (b >= samples) return {};
    const std::int64_t first = offsets[b];
    const int length = static_cast<int>(offsets[b + 1] - first);
    return {static_cast<int>(first), length, quotient(length + rows - 1, rows), 0, {}};
  };
  const auto place = [&](int* counters, const Placed& p) {
    const int of = class_of(p.tiles);
    return claim(counters, of, of == 0 ? p.tiles : 1);
  };
  const auto items_of = [&](int c) { return counts[c] * heads * (c == 0 ? 1 : kClasses - 1 - c); };
#pragma unroll 1
  for (int c = t; c < kClasses; c += threads) counts[c] = taken[c] = 0;
  __syncthreads();
  Placed own{};
#pragma unroll 1
  for (int from = 0; from < samples; from += threads) {
    own = sample_at(from + t);
    own.before = place(counts, own);
  }
  __syncthreads();
  const int classes = kClasses / threads;  // of a thread
  int sum = 0, all = 0;
#pragma unroll 1
  for (int c = t * classes; c < (t + 1) * classes; ++c) sum += items_of(c);
  sum = sum_before(sum, all);
#pragma unroll 1
  for (int c = t * classes; c < (t + 1) * classes; ++c) {
    begin[c] = sum;
    sum += items_of(c);
  }
  if (t == 0) {
    schedule.counters[0] = 0;
    schedule.counters[1] = all;
  }
#pragma unroll 1
  for (int from = 0; from < samples; from += threads) {
    if (samples > threads) {  // otherwise they have their places
      __syncthreads();
      own = sample_at(from + t);
      own.before = place(taken, own);
    }
    if (own.tiles > 0) own.groups = Groups(order, own.tiles, counts[class_of(own.tiles)] * heads);
    placed[t] = own;
    __syncthreads();
    const int all_heads = min(threads, samples - from) * heads;
    int shift = 0;  // 2^shift lanes write the items of one head
#pragma unroll 1
    while (shift < 5 && all_heads << (shift + 1) <= threads) ++shift;
#pragma unroll 1
    for (int i = t >> shift; i < all_heads; i += threads >> shift) {
      const int b = quotient(i, heads), head = i - b * heads;
      const Placed p = placed[b];
      if (p.tiles == 0) continue;
      const int of = class_of(p.tiles);
      int first = p.before * heads + head * p.tiles, base = first, stride = 1;
      if (of > 0) {
        const int at = p.before * heads + head;
        const bool last = at >= p.groups.last_begin;
        const int group = last ? p.groups.last_begin : quotient(at, p.groups.heads) * p.groups.heads;
        first = at * p.tiles;
        base = group * p.tiles + at - group;
        stride = last ? counts[of] * heads - group : p.groups.heads;
      }
      const bool contexts_first = order.last_first && contexts != nullptr && contexts[from + b] > 0;
      const auto tile_at = [&](int rank) {
        if (contexts_first) return rank == 0 ? 0 : p.tiles - rank;
        return order.last_first ? p.tiles - 1 - rank : rank;
      };
#pragma unroll 1
      for (int rank = t & ((1 << shift) - 1); rank < p.tiles; rank += 1 << shift) {
        const int tile = tile_at(rank);
        schedule.items[begin[of] + base + rank * stride] = {
            from + b, static_cast<std::uint32_t>(head) << kTileBits | static_cast<std::uint32_t>(tile),
            p.begin, p.length, begin[of] + first};
      }
    }
  }
}

struct ScheduleArguments {
  const std::int64_t* offsets;
  const std::int32_t* contexts;  // or null
  int samples, heads, rows;
  TileOrder order;
  Schedule schedule;
  uint4* zeroed;
  std::int64_t zeroed_count;
};

// Block 0 writes the schedule, the others the zeros.
__global__ void __launch_bounds__(kMostThreads) schedule_kernel(const __grid_constant__ ScheduleArguments a) {
  wait_for_previous_launch();  // it may still read the memory that is written here
  let_next_launch_begin();
  if (blockIdx.x == 0) {
    write_schedule(a.offsets, a.contexts, a.samples, a.heads, a.rows, a.order, a.schedule);
  } else {
    const std::int64_t stride = static_cast<std::int64_t>(gridDim.x - 1) * blockDim.x;
    std::int64_t i = static_cast<std::int64_t>(blockIdx.x - 1) * blockDim.x + threadIdx.x;
#pragma unroll 1
    for (; i < a.zeroed_count; i += stride) a.zeroed[i] = make_uint4(0, 0, 0, 0);
  }
}

}  // namespace

std::int64_t schedule_items(const AttentionProblem& p, int rows) {
  return p.heads * (p.tokens / rows + p.samples);
}

// L > rows tokens make (L + rows - 1) / rows tiles, which is at most 2 L / rows.
std::int64_t shared_tiles(const AttentionProblem& p, int rows) {
  return std::min(schedule_items(p, rows), p.heads * (2 * p.tokens / rows));
}

std::int64_t schedule_bytes(const AttentionProblem& p, int rows) {
  return kHeader + schedule_items(p, rows) * static_cast<std::int64_t>(sizeof(ScheduleItem));
}

Schedule schedule_at(void* memory) {
  return {static_cast<std::int32_t*>(memory),
          reinterpret_cast<ScheduleItem*>(static_cast<char*>(memory) + kHeader)};
}

void make_schedule(const AttentionProblem& p, int rows, const TileOrder& order, const Schedule& schedule,
                   void* zeroed, std::int64_t zeroed_bytes, cudaStream_t stream) {
  const std::int64_t count = zeroed_bytes / 16;
  const int threads = p.samples <= kFewThreads ? kFewThreads : kMostThreads;
  const auto blocks =
      static_cast<int>(1 + std::min<std::int64_t>((count + 4 * threads - 1) / (4 * threads), 528));
  const ScheduleArguments arguments{p.offsets,
                                    p.contexts,
                                    static_cast<int>(p.samples),
                                    static_cast<int>(p.heads),
                                    rows,
                                    order,
                                    schedule,
                                    static_cast<uint4*>(zeroed),
                                    count};
  launch_early(schedule_kernel, arguments, blocks, 1, threads, 0, stream, "attention schedule");
}

}  // namespace hstu::cuda
