#include <algorithm>

#include "hstu/attention/cuda/launch.cuh"
#include "hstu/attention/cuda/ptx.cuh"
#include "hstu/attention/cuda/schedule.h"

namespace hstu::cuda {
namespace {

constexpr int kThreads = 1024;
constexpr int kHeader = 16;  // bytes of the counters

// Samples fall into kThreads classes by their number of tiles, most tiles first (the last class but one holds
// all that are longer); `begin` counts and then places the items of each class.
__device__ void write_schedule(const std::int64_t* offsets, int samples, int heads, int rows, bool reversed,
                               Schedule schedule) {
  __shared__ int begin[kThreads];
  const int t = static_cast<int>(threadIdx.x);
  const auto tiles_of = [&](int b) {
    return static_cast<int>((offsets[b + 1] - offsets[b] + rows - 1) / rows);
  };
  const auto class_of = [&](int tiles) { return kThreads - 1 - min(tiles, kThreads - 1); };
  begin[t] = 0;
  __syncthreads();
  for (int b = t; b < samples; b += kThreads) {
    const int tiles = tiles_of(b);
    if (tiles > 0) atomicAdd(&begin[class_of(tiles)], tiles * heads);
  }
  __syncthreads();
  const int own = begin[t];
  for (int step = 1; step < kThreads; step *= 2) {
    const int before = t >= step ? begin[t - step] : 0;
    __syncthreads();
    begin[t] += before;
    __syncthreads();
  }
  const int end = begin[t];
  __syncthreads();
  begin[t] = end - own;
  if (t == kThreads - 1) {
    schedule.counters[0] = 0;
    schedule.counters[1] = end;
  }
  __syncthreads();
  const int lane = t % 32;
  for (int b = t / 32; b < samples; b += kThreads / 32) {
    const int tiles = tiles_of(b);
    const auto begin_row = static_cast<int>(offsets[b]),
               length = static_cast<int>(offsets[b + 1]) - begin_row;
    int place = 0;
    if (lane == 0 && tiles > 0) place = atomicAdd(&begin[class_of(tiles)], tiles * heads);
    place = __shfl_sync(0xffffffffu, place, 0);
    for (int i = lane; i < tiles * heads; i += 32) {
      const int head = i / tiles;
      const int tile = reversed ? tiles - 1 - i % tiles : i % tiles;
      schedule.items[place + i] = {
          b, static_cast<std::uint32_t>(head) << kTileBits | static_cast<std::uint32_t>(tile), begin_row,
          length};
    }
  }
}

struct ScheduleArguments {
  const std::int64_t* offsets;
  int samples, heads, rows;
  bool reversed;
  Schedule schedule;
  uint4* zeroed;
  std::int64_t zeroed_count;
};

// Block 0 writes the schedule, the others the zeros.
__global__ void __launch_bounds__(kThreads) schedule_kernel(const __grid_constant__ ScheduleArguments a) {
  wait_for_previous_launch();  // it may still read the memory that is written here
  let_next_launch_begin();
  if (blockIdx.x == 0) {
    write_schedule(a.offsets, a.samples, a.heads, a.rows, a.reversed, a.schedule);
  } else {
    const std::int64_t stride = static_cast<std::int64_t>(gridDim.x - 1) * kThreads;
    std::int64_t i = static_cast<std::int64_t>(blockIdx.x - 1) * kThreads + threadIdx.x;
    for (; i < a.zeroed_count; i += stride) a.zeroed[i] = make_uint4(0, 0, 0, 0);
  }
}

}  // namespace

std::int64_t schedule_bytes(const AttentionProblem& p, int rows) {
  const std::int64_t items = p.heads * (p.tokens / rows + p.samples);
  return kHeader + (items * static_cast<std::int64_t>(sizeof(ScheduleItem)) + 15) / 16 * 16;
}

Schedule schedule_at(void* memory) {
  return {static_cast<std::int32_t*>(memory),
          reinterpret_cast<ScheduleItem*>(static_cast<char*>(memory) + kHeader)};
}

void make_schedule(const AttentionProblem& p, int rows, TileOrder order, const Schedule& schedule,
                   void* zeroed, std::int64_t zeroed_bytes, cudaStream_t stream) {
  const std::int64_t count = zeroed_bytes / 16;
  const auto blocks =
      static_cast<int>(1 + std::min<std::int64_t>((count + 4 * kThreads - 1) / (4 * kThreads), 528));
  const ScheduleArguments arguments{p.offsets,
                                    static_cast<int>(p.samples),
                                    static_cast<int>(p.heads),
                                    rows,
                                    order == TileOrder::last_to_first,
                                    schedule,
                                    static_cast<uint4*>(zeroed),
                                    count};
  launch_early(schedule_kernel, arguments, blocks, 1, kThreads, 0, stream, "attention schedule");
}

}  // namespace hstu::cuda
