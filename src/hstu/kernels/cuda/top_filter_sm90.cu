// Scores of queries and items on Hopper's tensor cores, compared with a threshold of each query in registers.
// A block has 128 queries, 64 of each of two warpgroups, and walks over a part of the items, which one thread
// of a third warpgroup brings: while one warpgroup compares, the other multiplies.
#include <algorithm>

#include "hstu/base/error.h"
#include "hstu/device/cuda/current_device.h"
#include "hstu/device/cuda/launch.cuh"
#include "hstu/device/cuda/tensor_map.h"
#include "hstu/device/cuda/wgmma.cuh"
#include "hstu/kernels/cuda/numbers.cuh"
#include "hstu/kernels/cuda/row_stream_sm90.cuh"
#include "hstu/kernels/cuda/top_filter.h"

namespace hstu::kernels::cuda {
namespace {

using namespace hstu::cuda;
using Element = __nv_bfloat16;

constexpr int kOwn = kStreamOwn, kGroups = kStreamGroups, kGroupRows = kStreamGroupRows,
              kAllThreads = kStreamThreads;

template <int kD>
using Layout = StreamLayout<kD, kD == 256 ? 64 : 128, 4>;

struct Arguments {
  CUtensorMap queries, items;
  int query_count, item_count, steps;  // steps: of a part
  const float* threshold;
  int capacity;
  std::int32_t *counts, *candidates;
};

template <int kD>
__device__ Walk walk_of(const Arguments& a) {
  return walk_of_block(a.item_count, Layout<kD>::kItems, a.steps);
}

template <int kD>
__device__ void load(const Arguments& a, const Layout<kD>& shared) {
  using L = Layout<kD>;
  bring_own_rows<kD>(shared, a.queries);
  const Walk walk = walk_of<kD>(a);
  Turn<L::kSlots> turn;
  for (int step = 0; step < walk.steps; ++step, turn.next()) {
    barrier_wait_idle(shared.empty(turn.slot), turn.parity ^ 1);
    barrier_expect(shared.full(turn.slot), L::kSlotBytes);
    bring_rows<kD>(shared.slot(turn.slot), a.items, (walk.first + step) * L::kItems, L::kItems,
                   shared.full(turn.slot));
  }
}

template <int kD>
__device__ void compare(const Arguments& a, const Layout<kD>& shared, int group) {
  using L = Layout<kD>;
  const int t = static_cast<int>(threadIdx.x) % 128, lane = t % 32;
  const Walk walk = walk_of<kD>(a);
  Turn<L::kSlots> turn;
  const int query = static_cast<int>(blockIdx.x) * kOwn + group * kGroupRows + t / 32 * 16 + lane / 4;
  float threshold[2];
#pragma unroll
  for (int half = 0; half < 2; ++half)
    threshold[half] = query + 8 * half < a.query_count ? a.threshold[query + 8 * half] : INFINITY;
  const auto append = [&](int half, int item) {
    const int q = query + 8 * half, at = atomicAdd(a.counts + q, 1);
    if (at < a.capacity) a.candidates[static_cast<std::int64_t>(q) * a.capacity + at] = item;
  };
  barrier_wait(shared.own_full(), 0);
#pragma unroll 1
  for (int step = 0; step < walk.steps; ++step, turn.next()) {
    float s[L::kItems / 2];
    barrier_wait(shared.full(turn.slot), turn.parity);
    const std::uint32_t own = contiguous_k(shared.own(group)), items = contiguous_k(shared.slot(turn.slot));
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < kD / 16; ++i) {
      const std::uint64_t a_at = descriptor(own + (i / 4 * kGroupRows * 128 + i % 4 * 32) / 16);
      const std::uint64_t b_at = descriptor(items + (i / 4 * L::kItems * 128 + i % 4 * 32) / 16);
      if (i == 0)
        Wgmma<Element, L::kItems>::template ss_first<0, 0>(s, a_at, b_at);
      else
        Wgmma<Element, L::kItems>::template ss<0, 0>(s, a_at, b_at, 1);
    }
    wgmma_commit();
    wgmma_wait<0>();
    if (lane == 0) barrier_arrive(shared.empty(turn.slot));
    const int first = (walk.first + step) * L::kItems + lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < L::kItems / 2; ++i) {
      // A NaN is no candidate: its score is left out.
      if (s[i] >= threshold[i / 2 % 2] && first + i / 4 * 8 + i % 2 < a.item_count)
        append(i / 2 % 2, first + i / 4 * 8 + i % 2);
    }
  }
}

template <int kD>
__global__ void __launch_bounds__(kAllThreads, 1) filter_kernel(const __grid_constant__ Arguments a) {
  extern __shared__ char memory[];
  const Layout<kD> shared{(shared_address(memory) + 1023) & ~1023u};
  const int group = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / 128, 0);
  if (threadIdx.x == 0) {
    prefetch_map(&a.queries);
    prefetch_map(&a.items);
    for (int i = 0; i < Layout<kD>::kSlots; ++i) {
      barrier_init(shared.full(i), 1);
      barrier_init(shared.empty(i), 4 * kGroups);
    }
    barrier_init(shared.own_full(), 1);
    barrier_init_fence();
  }
  __syncthreads();
  wait_for_previous_launch();
  if (group == kGroups) {
    if (threadIdx.x == kGroups * 128) load<kD>(a, shared);
  } else {
    compare<kD>(a, shared, group);
  }
}

template <int kD>
void launch_filter(Arguments arguments, const TopFilter& p, CudaStream stream) {
  using L = Layout<kD>;
  arguments.queries = matrix_map(p.vectors, p.queries, kD, kD, kGroupRows);
  arguments.items = matrix_map(p.rows, p.items, kD, kD, L::kItems);
  const std::int64_t tiles = (p.queries + kOwn - 1) / kOwn, steps = (p.items + L::kItems - 1) / L::kItems,
                     processors =
                         current_device_attribute(cudaDevAttrMultiProcessorCount, "filter of top items");
  // About two rounds of blocks, of at least sixteen steps each.
  const std::int64_t parts = std::clamp<std::int64_t>(2 * processors / tiles, 1, (steps + 15) / 16);
  arguments.steps = static_cast<int>((steps + parts - 1) / parts);
  launch_grid(filter_kernel<kD>, arguments, dim3(static_cast<unsigned>(tiles), static_cast<unsigned>(parts)),
              1, kAllThreads, L::kBytes, stream.handle, "filter of top items");
}

}  // namespace

bool has_top_filter() {
  return current_device_attribute(cudaDevAttrComputeCapabilityMajor, "filter of top items") == 9;
}

void filter_top(const TopFilter& p, CudaStream stream) {
  if (p.queries == 0 || p.items == 0) return;
  require(p.items < (std::int64_t{1} << 30) && p.queries < (std::int64_t{1} << 30),
          "filter_top: {} queries of {} items are too many for one launch", p.queries, p.items);
  const Arguments arguments{.queries = {},
                            .items = {},
                            .query_count = static_cast<int>(p.queries),
                            .item_count = static_cast<int>(p.items),
                            .steps = 0,
                            .threshold = p.threshold,
                            .capacity = static_cast<int>(p.capacity),
                            .counts = p.counts,
                            .candidates = p.candidates};
  if (p.padded == 64)
    launch_filter<64>(arguments, p, stream);
  else if (p.padded == 128)
    launch_filter<128>(arguments, p, stream);
  else
    launch_filter<256>(arguments, p, stream);
}

}  // namespace hstu::kernels::cuda
