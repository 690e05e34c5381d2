// Sums of rows, each times the exponential of its product with another row, on Hopper: as attention with a
// softmax, whose keys are all rows of a matrix, and whose largest score is known before. A block has 128 own
// rows, 64 of each of two warpgroups, and walks over a part of the other rows, which one thread of a third
// warpgroup brings. While a warpgroup computes the exponentials of a step, the tensor cores multiply those of
// the step before by their values.
#include <algorithm>
#include <numbers>

#include "hstu/device/cuda/current_device.h"
#include "hstu/device/cuda/launch.cuh"
#include "hstu/device/cuda/tensor_map.h"
#include "hstu/device/cuda/wgmma.cuh"
#include "hstu/kernels/cuda/launch.cuh"
#include "hstu/kernels/cuda/numbers.cuh"
#include "hstu/kernels/cuda/row_stream_sm90.cuh"
#include "hstu/kernels/exp_sums.h"

namespace hstu::kernels {
namespace {

using namespace cuda;
using namespace hstu::cuda;
using Element = __nv_bfloat16;

constexpr int kOwn = static_cast<int>(kExpSumOwn), kOther = static_cast<int>(kExpSumOther);
static_assert(kOwn == kStreamOwn);
constexpr int kGroups = kStreamGroups, kGroupRows = kStreamGroupRows, kAllThreads = kStreamThreads;

template <int kD>
using Layout = StreamLayout<kD, kOther, kD == 64 ? 8 : 5>;  // slots of other rows, or of values

struct Arguments {
  CUtensorMap own, other, value;
  int rows, others, steps;  // steps: of a part
  float scale, shift;       // of exponents of 2
  int width;                // of results
  bool adds;
  float *sums, *totals, *rounded;  // (parts, rows, width), (parts, rows), (parts, rows)
  const std::int64_t* targets;     // (others)
  const float* log_sum;            // (others)
  std::int64_t first;
};

// What is made beside the sums: nothing, sums of exponentials, or less for pairs of a target and its row.
enum class Beside { nothing, totals, own };

__device__ Walk walk_of(const Arguments& a) {
  return walk_of_block(a.others, kOther, a.steps);
}

template <int kD>
__device__ void load(const Arguments& a, const Layout<kD>& shared) {
  bring_own_rows<kD>(shared, a.own);
  const Walk walk = walk_of(a);
  Turn<Layout<kD>::kSlots> turn;
  const auto bring = [&](const CUtensorMap& map, int step) {
    barrier_wait_idle(shared.empty(turn.slot), turn.parity ^ 1);
    barrier_expect(shared.full(turn.slot), Layout<kD>::kSlotBytes);
    bring_rows<kD>(shared.slot(turn.slot), map, (walk.first + step) * kOther, kOther, shared.full(turn.slot));
    turn.next();
  };
  for (int step = 0; step < walk.steps; ++step) {
    bring(a.other, step);
    if (step > 0) bring(a.value, step - 1);
  }
  if (walk.steps > 0) bring(a.value, walk.steps - 1);
}

template <int kD, Beside beside>
__device__ void compute(const Arguments& a, const Layout<kD>& shared, int group) {
  const int t = static_cast<int>(threadIdx.x) % 128, lane = t % 32;
  const Walk walk = walk_of(a);
  Turn<Layout<kD>::kSlots> turn;
  float sum[kD / 2] = {}, total[2] = {}, rounded[2] = {};
  const int row = static_cast<int>(blockIdx.x) * kOwn + group * kGroupRows + t / 32 * 16 + lane / 4;
  std::uint32_t weights[kOther / 4];
  const auto wait_full = [&] { barrier_wait(shared.full(turn.slot), turn.parity); };
  const auto release = [&](int slot) {
    if (lane == 0) barrier_arrive(shared.empty(slot));
  };
  // Both return the slot that they read.
  const auto multiply_rows = [&](float(&s)[kOther / 2]) {
    const int slot = turn.slot;
    const std::uint32_t own = contiguous_k(shared.own(group)), other = contiguous_k(shared.slot(slot));
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < kD / 16; ++i) {
      const std::uint64_t a_at = descriptor(own + (i / 4 * kGroupRows * 128 + i % 4 * 32) / 16);
      const std::uint64_t b_at = descriptor(other + (i / 4 * kOther * 128 + i % 4 * 32) / 16);
      if (i == 0)
        Wgmma<Element, kOther>::template ss_first<0, 0>(s, a_at, b_at);
      else
        Wgmma<Element, kOther>::template ss<0, 0>(s, a_at, b_at, 1);
    }
    wgmma_commit();
    turn.next();
    return slot;
  };
  const auto multiply_values = [&] {
    const int slot = turn.slot;
    const std::uint32_t value = contiguous_mn(shared.slot(slot), kOther * 128);
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < kOther / 16; ++i)
      Wgmma<Element, kD>::template rs<1>(sum, weights + 4 * i, descriptor(value + i * 128), 1);
    wgmma_commit();
    turn.next();
    return slot;
  };
  // Products become exponentials.
  const auto raise = [&](float(&s)[kOther / 2], int step) {
    const int left = a.others - (walk.first + step) * kOther;  // other rows from the step's first on
    if (left < kOther) {
#pragma unroll
      for (int i = 0; i < kOther / 2; ++i)
        if (i / 4 * 8 + lane % 4 * 2 + i % 2 >= left) s[i] = -INFINITY;
    }
#pragma unroll
    for (int i = 0; i < kOther / 2; ++i) {
      float e;
      asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(e) : "f"(fmaf(s[i], a.scale, -a.shift)));
      s[i] = e;
      if constexpr (beside == Beside::totals) total[i / 2 % 2] += e;
    }
  };
  // Whether a row of the warpgroup is the target of one of the step's other rows.
  const auto has_own = [&](int step) {
    const std::int64_t first = a.first + static_cast<std::int64_t>(blockIdx.x) * kOwn + group * kGroupRows;
    bool any = false;
#pragma unroll
    for (int i = 0; i < kOther / 32; ++i) {
      const int other = min((walk.first + step) * kOther + 32 * i + lane, a.others - 1);
      const std::int64_t own = __ldg(a.targets + other) - first;
      any = any || (own >= 0 && own < kGroupRows);
    }
    return __any_sync(0xffffffffu, any) != 0;
  };
  const auto subtract_own = [&](float(&s)[kOther / 2], int step) {
#pragma unroll
    for (int i = 0; i < kOther / 4; ++i) {
      const int other = (walk.first + step) * kOther + i / 2 * 8 + lane % 4 * 2 + i % 2;
      if (other >= a.others) continue;
      const std::int64_t own = a.targets[other] - a.first - row;
      if (own != 0 && own != 8) continue;
      const float less = exp2f(fmaf(a.log_sum[other], 1.4426950408889634f, -a.shift));
      s[i / 2 * 4 + i % 2] -= own == 0 ? less : 0.0f;
      s[i / 2 * 4 + i % 2 + 2] -= own == 8 ? less : 0.0f;
    }
  };
  const auto pack_weights = [&](const float(&s)[kOther / 2]) {
#pragma unroll
    for (int i = 0; i < kOther / 4; ++i) {
      weights[i] = pack<Element>(s[2 * i], s[2 * i + 1]);
      if constexpr (beside == Beside::totals) {
        const float2 pair = unpack<Element>(weights[i]);
        rounded[i % 2] += pair.x + pair.y;
      }
    }
  };

  barrier_wait(shared.own_full(), 0);
  if (walk.steps > 0) {
    float s[kOther / 2];
    wait_full();
    const int slot = multiply_rows(s);
    bool own = false;
    if constexpr (beside == Beside::own) own = has_own(0);
    wgmma_wait<0>();
    release(slot);
    raise(s, 0);
    if (own) subtract_own(s, 0);
    pack_weights(s);
  }
#pragma unroll 1
  for (int step = 1; step < walk.steps; ++step) {
    float s[kOther / 2];
    wait_full();
    const int rows_slot = multiply_rows(s);
    wait_full();
    const int value_slot = multiply_values();
    bool own = false;
    if constexpr (beside == Beside::own) own = has_own(step);
    wgmma_wait<1>();
    release(rows_slot);
    raise(s, step);
    if (own) subtract_own(s, step);
      // Otherwise ptxas moves the exponentials behind the wait for the product.
#pragma unroll
    for (int i = 0; i < kOther / 2; ++i) asm volatile("" : "+f"(s[i])::"memory");
    wgmma_wait<0>();
    release(value_slot);
    pack_weights(s);
  }
  if (walk.steps > 0) {
    wait_full();
    multiply_values();
    wgmma_wait<0>();
  }

  const std::int64_t part = std::int64_t{blockIdx.y} * a.rows;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const std::int64_t r = row + 8 * half;
    if constexpr (beside == Beside::totals) {
      float2 all = {total[half], rounded[half]};
#pragma unroll
      for (int step = 1; step < 4; step *= 2) {
        all.x += __shfl_xor_sync(0xffffffffu, all.x, step);
        all.y += __shfl_xor_sync(0xffffffffu, all.y, step);
      }
      if (r < a.rows && lane % 4 == 0) {
        a.totals[part + r] = all.x + (a.adds ? a.totals[part + r] : 0);
        a.rounded[part + r] = all.y + (a.adds ? a.rounded[part + r] : 0);
      }
    }
    if (r >= a.rows) continue;
    float* const to = a.sums + (part + r) * a.width;
#pragma unroll
    for (int i = 0; i < kD / 8; ++i) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int column = 8 * i + lane % 4 * 2 + e;
        if (column < a.width) to[column] = sum[4 * i + 2 * half + e] + (a.adds ? to[column] : 0);
      }
    }
  }
}

template <int kD, Beside beside>
__global__ void __launch_bounds__(kAllThreads, 1) exp_sums_kernel(const __grid_constant__ Arguments a) {
  extern __shared__ char memory[];
  const Layout<kD> shared{(shared_address(memory) + 1023) & ~1023u};
  const int group = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / 128, 0);
  if (threadIdx.x == 0) {
    for (const CUtensorMap* map : {&a.own, &a.other, &a.value}) prefetch_map(map);
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
    give_registers<40>();
    if (threadIdx.x == kGroups * 128) load<kD>(a, shared);
  } else {
    take_registers<232>();
    compute<kD, beside>(a, shared, group);
  }
}

// Adds up the parts, in order.
__global__ void add_exp_parts(std::int64_t size, std::int64_t parts, const float* from, bool adds,
                              float* to) {
  hstu::cuda::wait_for_previous_launch();
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= size) return;
  float sum = adds ? to[i] : 0;
  for (std::int64_t part = 0; part < parts; ++part) sum += from[part * size + i];
  to[i] = sum;
}

void launch_exp_sums(std::int64_t padded, const Arguments& arguments, dim3 blocks, CudaStream stream) {
  const auto launch = [&]<int kD>() {
    const auto kernel = arguments.totals != nullptr    ? exp_sums_kernel<kD, Beside::totals>
                        : arguments.targets != nullptr ? exp_sums_kernel<kD, Beside::own>
                                                       : exp_sums_kernel<kD, Beside::nothing>;
    launch_grid(kernel, arguments, blocks, 1, kAllThreads, Layout<kD>::kBytes, stream.handle,
                "exponential sums");
  };
  if (padded == 64)
    launch.template operator()<64>();
  else
    launch.template operator()<128>();
}

}  // namespace

bool has_exp_sums(CudaStream) {
  return current_device_attribute(cudaDevAttrComputeCapabilityMajor, "exponential sums") == 9;
}

void exp_sums(const ExpSums& p, CudaStream stream) {
  if (p.rows == 0) return;
  require(p.padded == 64 || p.padded == 128, "exp_sums: rows of {} numbers", p.padded);
  require(p.rows < (std::int64_t{1} << 31) - kOwn && p.others < (std::int64_t{1} << 31) - kOther,
          "exp_sums: {} and {} rows are too many for one launch", p.rows, p.others);
  const int tiles = static_cast<int>((p.rows + kOwn - 1) / kOwn);
  const std::int64_t parts = exp_sum_parts(
      p.rows, p.others, current_device_attribute(cudaDevAttrMultiProcessorCount, "exponential sums"));
  const std::int64_t steps = (p.others + kOther - 1) / kOther;
  Arguments arguments{
      .own = matrix_map(p.own, p.rows, p.padded, p.padded, kGroupRows),
      .other = matrix_map(p.other, std::max<std::int64_t>(p.others, 1), p.padded, p.padded, kOther),
      .value = matrix_map(p.value, std::max<std::int64_t>(p.others, 1), p.padded, p.padded, kOther),
      .rows = static_cast<int>(p.rows),
      .others = static_cast<int>(p.others),
      .steps = static_cast<int>((steps + parts - 1) / parts),
      .scale = static_cast<float>(p.scale * std::numbers::log2e),
      .shift = static_cast<float>(p.shift * std::numbers::log2e),
      .width = static_cast<int>(p.width),
      .adds = p.adds,
      .sums = p.sums,
      .totals = p.totals,
      .rounded = p.rounded,
      .targets = p.targets,
      .log_sum = p.log_sum,
      .first = p.first};
  const std::int64_t size = p.rows * p.width, of_totals = p.totals != nullptr ? p.rows : 0;
  const Scratch<float> scratch(stream, parts > 1 ? parts * (size + 2 * of_totals) : 0);
  if (parts > 1) {
    arguments.adds = false;
    arguments.sums = scratch.data();
    if (of_totals > 0) {
      arguments.totals = arguments.sums + parts * size;
      arguments.rounded = arguments.totals + parts * of_totals;
    }
  }
  launch_exp_sums(p.padded, arguments, dim3(static_cast<unsigned>(tiles), static_cast<unsigned>(parts)),
                  stream);
  if (parts == 1) return;
  const auto add = [&](std::int64_t count, const float* from, float* to) {
    hstu::cuda::launch("exponential sums, parts", add_exp_parts, blocks_for(count, kThreads), kThreads,
                       stream.handle, count, parts, from, p.adds, to);
  };
  add(size, arguments.sums, p.sums);
  if (of_totals == 0) return;
  add(of_totals, arguments.totals, p.totals);
  add(of_totals, arguments.rounded, p.rounded);
}

}  // namespace hstu::kernels
