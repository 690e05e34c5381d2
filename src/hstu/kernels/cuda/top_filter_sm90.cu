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
  int parts, capacity;
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

// Of a step's items a thread has two of every eight, one for each bit of a mask.
__device__ int item_of_bit(int first, int bit) {
  return first + static_cast<int>(threadIdx.x) % 4 * 2 + bit / 2 * 8 + bit % 2;
}
template <int kItems>
__device__ std::uint32_t items_before(int first, int end) {
  std::uint32_t bits = 0;
  for (int bit = 0; bit < kItems / 4; ++bit)
    if (item_of_bit(first, bit) < end) bits |= 1u << bit;
  return bits;
}

// Appends the items that pass to the list of a query, which four neighbouring threads share: found are there.
__device__ void append(std::uint32_t passes, int first, std::int32_t* to, int capacity, int& found) {
  const int own = __popc(passes);
  int up_to = own;  // of this thread and those before it
#pragma unroll
  for (int step = 1; step < 4; step *= 2) {
    const int before = __shfl_up_sync(~0u, up_to, step, 4);
    if (static_cast<int>(threadIdx.x) % 4 >= step) up_to += before;
  }
  int at = found + up_to - own;
  found += __shfl_sync(~0u, up_to, 3, 4);
  for (; passes != 0; passes &= passes - 1, ++at)
    if (at < capacity) to[at] = item_of_bit(first, __ffs(static_cast<int>(passes)) - 1);
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
  int found[2] = {0, 0};
  std::int32_t* to[2];
#pragma unroll
  for (int half = 0; half < 2; ++half)
    to[half] =
        a.candidates + (static_cast<std::int64_t>(query + 8 * half) * a.parts + blockIdx.y) * a.capacity;
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
    const int first = (walk.first + step) * L::kItems;
    std::uint32_t passes[2] = {0, 0};
#pragma unroll
    for (int i = 0; i < L::kItems / 2; ++i)  // a NaN does not pass: its score is left out
      if (s[i] >= threshold[i / 2 % 2]) passes[i / 2 % 2] |= 1u << (i / 4 * 2 + i % 2);
    if (first + L::kItems > a.item_count) {
      const std::uint32_t in = items_before<L::kItems>(first, a.item_count);
      passes[0] &= in, passes[1] &= in;
    }
    if (__any_sync(~0u, (passes[0] | passes[1]) != 0)) {
      append(passes[0], first, to[0], a.capacity, found[0]);
      append(passes[1], first, to[1], a.capacity, found[1]);
    }
  }
#pragma unroll
  for (int half = 0; half < 2; ++half)
    if (lane % 4 == 0 && query + 8 * half < a.query_count)
      a.counts[static_cast<std::int64_t>(query + 8 * half) * a.parts + blockIdx.y] = found[half];
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
  const std::int64_t tiles = (p.queries + kOwn - 1) / kOwn, steps = (p.items + L::kItems - 1) / L::kItems;
  arguments.steps = static_cast<int>((steps + p.parts - 1) / p.parts);
  launch_grid(filter_kernel<kD>, arguments,
              dim3(static_cast<unsigned>(tiles), static_cast<unsigned>(p.parts)), 1, kAllThreads, L::kBytes,
              stream.handle, "filter of top items");
}

}  // namespace

bool has_top_filter() {
  return current_device_attribute(cudaDevAttrComputeCapabilityMajor, "filter of top items") == 9;
}

std::int64_t filter_parts(std::int64_t queries, std::int64_t items) {
  const std::int64_t processors =
                         current_device_attribute(cudaDevAttrMultiProcessorCount, "filter of top items"),
                     tiles = (queries + kOwn - 1) / kOwn;
  // About two rounds of blocks, of at least 2,048 items each.
  return std::clamp<std::int64_t>(2 * processors / std::max<std::int64_t>(tiles, 1), 1,
                                  std::clamp<std::int64_t>(items / 2048, 1, kMostFilterParts));
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
                            .parts = static_cast<int>(p.parts),
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
