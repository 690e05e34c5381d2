// Layers of few rows in bf16, as a search has them: all multiprocessors read a part of the weight at once. A
// block multiplies up to 128 rows by 64 columns of the weight along a part of k, in stages of 64 deep, on
// wgmma; the copy engine brings all stages of the weight before the launch before has ended; the blocks of a
// cluster have the parts of k, add up the sums in their order through shared memory, and go on with what
// follows.
#include <algorithm>

#include "hstu/device/cuda/cluster.cuh"
#include "hstu/device/cuda/current_device.h"
#include "hstu/device/cuda/mma.cuh"
#include "hstu/device/cuda/ptx.cuh"
#include "hstu/device/cuda/tensor_map.h"
#include "hstu/device/cuda/wgmma.cuh"
#include "hstu/kernels/cuda/dense.h"
#include "hstu/kernels/cuda/launch.cuh"
#include "hstu/kernels/cuda/numbers.cuh"

namespace hstu::kernels {
namespace {

using namespace cuda;
using namespace hstu::cuda;
using Element = __nv_bfloat16;

constexpr int kColumns = 64, kDepth = 64, kRowBytes = 128;  // of a row of 64 elements
constexpr int kFewStages = 4, kManyStages = 8;
constexpr int kMostParts = 4;             // blocks of a cluster
constexpr int kSumStride = kColumns + 4;  // floats
constexpr const char* kWhat = "dense layer";

enum class Then { nothing, relu, gelu, silu };

struct Layer {
  CUtensorMap x, weight;            // boxes of kRows rows of x and kDepth of the weight, 64 columns each
  int rows, in, out, parts, depth;  // depth: of a part of k
  // From a column of y to that of the weight: below `second`, and from there on.
  int second, to_first, to_second;
  bool weight_is_ready;
  const Element* residual;
  const float* bias;
  Element *y, *activated;
  int silu_from;
};

__device__ __forceinline__ int weight_column(const Layer& p, int column) {
  return column + (column < p.second ? p.to_first : p.to_second);
}

template <Then then>
__device__ __forceinline__ float after(float x) {
  if constexpr (then == Then::relu) return fmaxf(x, 0.0f);
  if constexpr (then == Then::gelu) return 0.5f * x * (1.0f + erff(x * 0.70710678118654752f));
  if constexpr (then == Then::silu) return x / (1.0f + __expf(-x));
  return x;
}

template <int kGroups, int kStages>
constexpr int shared_bytes() {
  const int rows = 64 * kGroups;
  return std::max(kStages * (rows + kDepth) * kRowBytes, rows * kSumStride * 4) + 1024;
}

// What follows the sums of a part, which are in shared memory at `sums`: a block adds up those of all parts
// in every kParts-th row.
template <int kGroups, Then then, int kParts>
__device__ __forceinline__ void finish(const Layer& p, std::uint32_t sums, int part, int row0, int column0) {
  constexpr int kThreads = 128 * kGroups, kPieces = kColumns / 4,
                kAtOnce = 64 * kGroups * kPieces / kThreads / kParts;
  const int column = static_cast<int>(threadIdx.x) % kPieces * 4,
            first = static_cast<int>(threadIdx.x) / kPieces * kParts + part, rows = p.rows - row0;
  const auto row_of = [&](int i) { return first + i * (kThreads / kPieces * kParts); };
  const auto place = [&](int i) {
    return static_cast<std::int64_t>(row0 + row_of(i)) * p.out + column0 + column;
  };
  float4 bias{0, 0, 0, 0};
  if (p.bias != nullptr) bias = *reinterpret_cast<const float4*>(p.bias + weight_column(p, column0) + column);
  uint2 residual[kAtOnce];
#pragma unroll
  for (int i = 0; i < kAtOnce; ++i)
    if (p.residual != nullptr && row_of(i) < rows)
      residual[i] = *reinterpret_cast<const uint2*>(p.residual + place(i));
  if constexpr (kParts > 1)
    cluster_barrier();
  else
    named_barrier(1, kThreads);
  float4 of_part[kAtOnce][kParts];
#pragma unroll
  for (int i = 0; i < kAtOnce; ++i)
#pragma unroll
    for (int peer = 0; peer < kParts; ++peer)
      of_part[i][peer] = load_quad_of_peer(
          peer_address(sums + (row_of(i) * kSumStride + column) * 4, static_cast<std::uint32_t>(peer)));
#pragma unroll
  for (int i = 0; i < kAtOnce; ++i) {
    if (row_of(i) >= rows) continue;
    float4 sum{0, 0, 0, 0};
#pragma unroll
    for (const float4& more : of_part[i]) sum.x += more.x, sum.y += more.y, sum.z += more.z, sum.w += more.w;
    sum = {after<then>(sum.x + bias.x), after<then>(sum.y + bias.y), after<then>(sum.z + bias.z),
           after<then>(sum.w + bias.w)};
    if (p.residual != nullptr) {
      const float2 low = unpack<Element>(residual[i].x), high = unpack<Element>(residual[i].y);
      sum.x += low.x, sum.y += low.y, sum.z += high.x, sum.w += high.y;
    }
    const uint2 all{pack<Element>(sum.x, sum.y), pack<Element>(sum.z, sum.w)};
    *reinterpret_cast<uint2*>(p.y + place(i)) = all;
    if (p.activated == nullptr || column0 + column < p.silu_from) continue;
    const float2 low = unpack<Element>(all.x), high = unpack<Element>(all.y);
    const std::int64_t to =
        static_cast<std::int64_t>(row0 + row_of(i)) * (p.out - p.silu_from) + column0 + column - p.silu_from;
    *reinterpret_cast<uint2*>(p.activated + to) = {
        pack<Element>(after<Then::silu>(low.x), after<Then::silu>(low.y)),
        pack<Element>(after<Then::silu>(high.x), after<Then::silu>(high.y))};
  }
}

// A warpgroup for each 64 rows, and a warp that copies.
template <int kGroups, int kStages, Then then>
__global__ void __launch_bounds__(128 * kGroups + 32, kStages > kFewStages ? 1 : 2)
    few_rows(const __grid_constant__ Layer p) {
  constexpr int kThreads = 128 * kGroups, kRows = 64 * kGroups, kStageBytes = (kRows + kDepth) * kRowBytes;
  extern __shared__ char memory[];
  __shared__ std::uint64_t barriers[2 * kStages];
  const std::uint32_t stages = (shared_address(memory) + 1023) & ~1023u, full = shared_address(barriers),
                      empty = full + 8 * kStages;
  const int part = static_cast<int>(blockIdx.x) % p.parts;
  const int column0 = static_cast<int>(blockIdx.x) / p.parts * kColumns,
            row0 = static_cast<int>(blockIdx.y) * kRows;
  const int k0 = part * p.depth, steps = max(0, min(p.depth, p.in - k0)) / kDepth;
  let_next_launch_begin();  // all blocks are there: it takes the place of none
  if (threadIdx.x == kThreads) {
    for (int i = 0; i < kStages; ++i) {
      barrier_init(full + 8 * i, 1);
      barrier_init(empty + 8 * i, kThreads / 32);
    }
    barrier_init_fence();
  }
  __syncthreads();
  if (threadIdx.x >= kThreads) {
    if (threadIdx.x == kThreads) {
      const auto copy_weight = [&](int step) {
        const int stage = step % kStages;
        if (step >= kStages) barrier_wait(empty + 8 * stage, (step / kStages - 1) & 1);
        barrier_expect(full + 8 * stage, kStageBytes);
        load_matrix_box(stages + stage * kStageBytes + kRows * kRowBytes, &p.weight,
                        weight_column(p, column0), k0 + step * kDepth, full + 8 * stage);
      };
      const auto copy_x = [&](int step) {
        const int stage = step % kStages;
        load_matrix_box(stages + stage * kStageBytes, &p.x, k0 + step * kDepth, row0, full + 8 * stage);
      };
      int early = 0;
      if (p.weight_is_ready)
        for (; early < min(steps, kStages); ++early) copy_weight(early);
      wait_for_previous_launch();
      for (int step = 0; step < steps; ++step) {
        if (step >= early) copy_weight(step);
        copy_x(step);
      }
    } else {
      wait_for_previous_launch();
    }
    return;
  }
  wait_for_previous_launch();

  const int group_row = static_cast<int>(threadIdx.x) / 128 * 64, lane = threadIdx.x % 32;
  float sums[kColumns / 2];  // as wgmma leaves them
#pragma unroll
  for (float& sum : sums) sum = 0;
  for (int step = 0; step < steps; ++step) {
    const int stage = step % kStages;
    barrier_wait(full + 8 * stage, step / kStages & 1);
    const std::uint32_t tile = stages + stage * kStageBytes;
    const std::uint32_t a = contiguous_k(tile + group_row * kRowBytes),
                        b = contiguous_mn(tile + kRows * kRowBytes, kDepth * kRowBytes);
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < kDepth / 16; ++k)
      Wgmma<Element, kColumns>::template ss<0, 1>(sums, descriptor(a + k * 2), descriptor(b + k * 128), 1);
    wgmma_commit();
    wgmma_wait<0>();
    if (lane == 0) barrier_arrive(empty + 8 * stage);
  }
  named_barrier(1, kThreads);  // all stages have been read

  const int first = group_row + static_cast<int>(threadIdx.x) / 32 % 4 * 16 + lane / 4;
#pragma unroll
  for (int i = 0; i < kColumns / 4; ++i)
    store_shared_pair(stages + ((first + i % 2 * 8) * kSumStride + i / 2 * 8 + lane % 4 * 2) * 4, sums[2 * i],
                      sums[2 * i + 1]);
  if (p.parts == 1) return finish<kGroups, then, 1>(p, stages, 0, row0, column0);
  if (p.parts == 2)
    finish<kGroups, then, 2>(p, stages, part, row0, column0);
  else
    finish<kGroups, then, 4>(p, stages, part, row0, column0);
  cluster_barrier_of_reads();  // until the others have read this block's sums
}

// ---- launches

template <int kGroups, int kStages>
void launch_tiles(const Layer& p, Then then, cudaStream_t stream) {
  const dim3 blocks(static_cast<unsigned>(p.out / kColumns * p.parts),
                    static_cast<unsigned>((p.rows + 64 * kGroups - 1) / (64 * kGroups)));
  const auto run = [&](auto* kernel) {
    launch_grid(kernel, p, blocks, p.parts, 128 * kGroups + 32, shared_bytes<kGroups, kStages>(), stream,
                kWhat);
  };
  switch (then) {
    case Then::nothing:
      return run(few_rows<kGroups, kStages, Then::nothing>);
    case Then::relu:
      return run(few_rows<kGroups, kStages, Then::relu>);
    case Then::gelu:
      return run(few_rows<kGroups, kStages, Then::gelu>);
    case Then::silu:
      return run(few_rows<kGroups, kStages, Then::silu>);
  }
}

// One block to a multiprocessor where that is enough for all, otherwise two.
template <int kGroups>
void launch_few(Layer p, const Element* x, const Element* weight, std::int64_t weight_columns, Then then,
                int multiprocessors, cudaStream_t stream) {
  constexpr int kRows = 64 * kGroups;
  const int tiles = (p.rows + kRows - 1) / kRows * (p.out / kColumns), depths = p.in / kDepth;
  p.x = matrix_map(x, p.rows, p.in, p.in, kRows);
  p.weight = matrix_map(weight, p.in, weight_columns, weight_columns, kDepth);
  p.parts = 1;
  while (p.parts < kMostParts && tiles * 2 * p.parts <= multiprocessors && depths >= 4 * p.parts)
    p.parts *= 2;
  p.depth = (depths + p.parts - 1) / p.parts * kDepth;
  if (tiles * p.parts <= multiprocessors)
    launch_tiles<kGroups, kManyStages>(p, then, stream);
  else
    launch_tiles<kGroups, kFewStages>(p, then, stream);
}

bool is_aligned_to_16(const void* data) {
  return reinterpret_cast<std::uintptr_t>(data) % 16 == 0;
}

}  // namespace

bool cuda::dense_few_rows(const Dense<BFloat16>& p, CudaStream stream) {
  if (p.row_stable || p.rows > (1 << 20) || p.out % kColumns != 0 || p.in % kDepth != 0 ||
      p.out > (1 << 20) || p.in > (1 << 20) || (p.activated != nullptr && p.silu_from % 4 != 0))
    return false;
  if (p.columns.size() > 2) return false;
  std::int64_t weight_columns = p.out, to_first = 0, second = p.out, to_second = 0;
  if (!p.columns.empty()) {
    weight_columns = p.weight_columns;
    to_first = p.columns.front().begin, second = p.columns.front().width();
    to_second = p.columns.back().begin - second;
    if (second % kColumns != 0 || weight_columns % 8 != 0 || to_first % 4 != 0 || to_second % 4 != 0)
      return false;
  }
  for (const void* data :
       std::initializer_list<const void*>{p.x, p.weight, p.bias, p.residual, p.y, p.activated})
    if (!is_aligned_to_16(data)) return false;
  if (current_device_attribute(cudaDevAttrComputeCapabilityMajor, kWhat) < 9) return false;
  const int multiprocessors = current_device_attribute(cudaDevAttrMultiProcessorCount, kWhat);
  // More tiles than multiprocessors are faster as those of large products.
  constexpr std::int64_t kRows = 128;
  if (p.rows > kRows && (p.rows + kRows - 1) / kRows * (p.out / kColumns) > multiprocessors) return false;
  const Layer layer{.x = {},
                    .weight = {},
                    .rows = static_cast<int>(p.rows),
                    .in = static_cast<int>(p.in),
                    .out = static_cast<int>(p.out),
                    .parts = 1,
                    .depth = static_cast<int>(p.in),
                    .second = static_cast<int>(second),
                    .to_first = static_cast<int>(to_first),
                    .to_second = static_cast<int>(to_second),
                    .weight_is_ready = p.weight_is_ready,
                    .residual = native(p.residual),
                    .bias = p.bias,
                    .y = native(p.y),
                    .activated = native(p.activated),
                    .silu_from = static_cast<int>(p.silu_from)};
  Then then = Then::nothing;
  if (p.activation == Activation::relu) then = Then::relu;
  if (p.activation == Activation::gelu) then = Then::gelu;
  if (p.activation == Activation::silu) then = Then::silu;
  // Tiles of 256 rows, of which a multiprocessor holds one block in place of two, take longer.
  if (p.rows > 64)
    launch_few<2>(layer, native(p.x), native(p.weight), weight_columns, then, multiprocessors, stream.handle);
  else
    launch_few<1>(layer, native(p.x), native(p.weight), weight_columns, then, multiprocessors, stream.handle);
  return true;
}

}  // namespace hstu::kernels
