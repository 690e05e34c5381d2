// Layers of few rows in bf16, as a search has them: all multiprocessors read a part of the weight at once. A
// block multiplies up to 128 rows by 64 columns of the weight along a part of k, in four stages of 64 deep,
// on wgmma; the blocks of a cluster have the parts of k, add up the sums in their order through shared
// memory, and go on with what follows.
#include <algorithm>

#include "hstu/device/cuda/current_device.h"
#include "hstu/device/cuda/mma.cuh"
#include "hstu/device/cuda/ptx.cuh"
#include "hstu/device/cuda/wgmma.cuh"
#include "hstu/kernels/cuda/dense.h"
#include "hstu/kernels/cuda/launch.cuh"
#include "hstu/kernels/cuda/numbers.cuh"

namespace hstu::kernels {
namespace {

using namespace cuda;
using namespace hstu::cuda;
using Element = __nv_bfloat16;

constexpr int kColumns = 64, kDepth = 64, kStages = 4, kRowBytes = 128;  // of a row of 64 elements
constexpr int kMostParts = 4;                                            // blocks of a cluster
constexpr int kSumStride = kColumns + 4;                                 // floats
constexpr const char* kWhat = "dense layer";

enum class Then { nothing, relu, gelu, silu };

struct Layer {
  int rows, in, out, parts, depth;  // depth: of a part of k
  bool weight_is_ready;
  const Element *x, *weight, *residual;
  const float* bias;
  Element *y, *activated;
  int silu_from;
};

// Rows of 64 elements, 128 bytes, in the 128-byte swizzle of wgmma: piece c (16 bytes) of row r is at place
// c ^ (r % 8).
template <int kRows, int kThreads>
__device__ __forceinline__ void copy_tile(std::uint32_t to, const Element* from, std::int64_t stride,
                                          int there) {
#pragma unroll
  for (int i = 0; i < kRows * 8 / kThreads; ++i) {
    const int at = static_cast<int>(threadIdx.x) + i * kThreads, row = at / 8, piece = at % 8;
    const bool inside = row < there;
    copy_or_zero(to + row * kRowBytes + ((piece ^ (row & 7)) * 16),
                 inside ? from + row * stride + piece * 8 : from, inside ? 16 : 0);
  }
}

template <Then then>
__device__ __forceinline__ float after(float x) {
  if constexpr (then == Then::relu) return fmaxf(x, 0.0f);
  if constexpr (then == Then::gelu) return 0.5f * x * (1.0f + erff(x * 0.70710678118654752f));
  if constexpr (then == Then::silu) return x / (1.0f + __expf(-x));
  return x;
}

template <int kGroups>
constexpr int shared_bytes() {
  const int rows = 64 * kGroups;
  return std::max(kStages * (rows + kDepth) * kRowBytes, rows * kSumStride * 4) + 1024;
}

// A warpgroup for each 64 rows.
template <int kGroups, Then then>
__global__ void __launch_bounds__(128 * kGroups, 2) few_rows(const __grid_constant__ Layer p) {
  constexpr int kThreads = 128 * kGroups, kRows = 64 * kGroups, kStageBytes = (kRows + kDepth) * kRowBytes;
  extern __shared__ char memory[];
  const std::uint32_t stages = (shared_address(memory) + 1023) & ~1023u;
  const int part = static_cast<int>(blockIdx.x) % p.parts;
  const int column0 = static_cast<int>(blockIdx.x) / p.parts * kColumns,
            row0 = static_cast<int>(blockIdx.y) * kRows;
  const int k0 = part * p.depth, steps = min(p.depth, p.in - k0) / kDepth, rows = min(kRows, p.rows - row0);
  const int group_row = static_cast<int>(threadIdx.x) / 128 * 64;
  const Element* const x = p.x + static_cast<std::int64_t>(row0) * p.in + k0;
  const Element* const weight = p.weight + static_cast<std::int64_t>(k0) * p.out + column0;
  const auto copy_weight = [&](int step) {
    if (step < steps)
      copy_tile<kDepth, kThreads>(stages + step % kStages * kStageBytes + kRows * kRowBytes,
                                  weight + static_cast<std::int64_t>(step) * kDepth * p.out, p.out, kDepth);
  };
  const auto copy_x = [&](int step) {
    if (step < steps)
      copy_tile<kRows, kThreads>(stages + step % kStages * kStageBytes, x + step * kDepth, p.in, rows);
    commit_copies();
  };
  let_next_launch_begin();  // all blocks are there: it takes the place of none
  if (p.weight_is_ready)
    for (int step = 0; step < kStages - 1; ++step) copy_weight(step);
  wait_for_previous_launch();
  for (int step = 0; step < kStages - 1; ++step) {
    if (!p.weight_is_ready) copy_weight(step);
    copy_x(step);  // the first group of copies has those before it too
  }

  float sums[kColumns / 2];  // as wgmma leaves them
#pragma unroll
  for (float& sum : sums) sum = 0;
  for (int step = 0; step < steps; ++step) {
    wait_for_copy_groups<kStages - 2>();
    fence_async_proxy();
    __syncthreads();
    const std::uint32_t tile = stages + step % kStages * kStageBytes;
    const std::uint32_t a = contiguous_k(tile + group_row * kRowBytes),
                        b = contiguous_mn(tile + kRows * kRowBytes, kDepth * kRowBytes);
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < kDepth / 16; ++k)
      Wgmma<Element, kColumns>::template ss<0, 1>(sums, descriptor(a + k * 2), descriptor(b + k * 128),
                                                  step > 0 || k > 0);
    wgmma_commit();
    copy_weight(step + kStages - 1);
    copy_x(step + kStages - 1);
    wgmma_wait<0>();
  }
  wait_for_copies();
  __syncthreads();

  // The sums of the parts, rows by turns.
  const int lane = threadIdx.x % 32,
            first = group_row + static_cast<int>(threadIdx.x) / 32 % 4 * 16 + lane / 4;
#pragma unroll
  for (int i = 0; i < kColumns / 4; ++i)
    store_shared_pair(stages + ((first + i % 2 * 8) * kSumStride + i / 2 * 8 + lane % 4 * 2) * 4, sums[2 * i],
                      sums[2 * i + 1]);
  if (p.parts > 1)
    cluster_barrier();
  else
    __syncthreads();
  constexpr int kPieces = kColumns / 4;
  for (int i = threadIdx.x; i < kRows * kPieces / p.parts; i += kThreads) {
    const int row = i / kPieces * p.parts + part, column = i % kPieces * 4;
    if (row >= rows) continue;
    const std::uint32_t from = stages + (row * kSumStride + column) * 4;
    float4 of_part[kMostParts], sum{0, 0, 0, 0};
#pragma unroll
    for (int peer = 0; peer < kMostParts; ++peer)
      if (peer < p.parts) of_part[peer] = load_quad_of_peer(peer_address(from, peer));
#pragma unroll
    for (int peer = 0; peer < kMostParts; ++peer) {
      if (peer >= p.parts) continue;
      const float4 more = of_part[peer];
      sum.x += more.x, sum.y += more.y, sum.z += more.z, sum.w += more.w;
    }
    float4 bias{0, 0, 0, 0};
    if (p.bias != nullptr) bias = *reinterpret_cast<const float4*>(p.bias + column0 + column);
    sum = {after<then>(sum.x + bias.x), after<then>(sum.y + bias.y), after<then>(sum.z + bias.z),
           after<then>(sum.w + bias.w)};
    const std::int64_t at = static_cast<std::int64_t>(row0 + row) * p.out + column0 + column;
    if (p.residual != nullptr) {
      const uint2 pairs = *reinterpret_cast<const uint2*>(p.residual + at);
      const float2 low = unpack<Element>(pairs.x), high = unpack<Element>(pairs.y);
      sum.x += low.x, sum.y += low.y, sum.z += high.x, sum.w += high.y;
    }
    const uint2 all{pack<Element>(sum.x, sum.y), pack<Element>(sum.z, sum.w)};
    *reinterpret_cast<uint2*>(p.y + at) = all;
    if (p.activated == nullptr || column0 + column < p.silu_from) continue;
    const float2 low = unpack<Element>(all.x), high = unpack<Element>(all.y);
    const std::int64_t to =
        static_cast<std::int64_t>(row0 + row) * (p.out - p.silu_from) + column0 + column - p.silu_from;
    *reinterpret_cast<uint2*>(p.activated + to) = {
        pack<Element>(after<Then::silu>(low.x), after<Then::silu>(low.y)),
        pack<Element>(after<Then::silu>(high.x), after<Then::silu>(high.y))};
  }
  if (p.parts > 1) cluster_barrier();  // until the others have read this block's sums
}

// ---- launches

template <int kGroups>
void launch_few(Layer p, Then then, int multiprocessors, cudaStream_t stream) {
  constexpr int kRows = 64 * kGroups;
  const int row_tiles = (p.rows + kRows - 1) / kRows, column_tiles = p.out / kColumns;
  // Two blocks to a multiprocessor; of 128 rows in four parts three to two of them, as each reads all of x.
  const auto fits = [&](int parts) {
    const int blocks = row_tiles * column_tiles * parts;
    return 2 * blocks <= (kGroups > 1 && parts > 2 ? 3 : 4) * multiprocessors;
  };
  p.parts = 1;
  while (p.parts < kMostParts && fits(2 * p.parts) && p.in >= 2 * kDepth * 2 * p.parts) p.parts *= 2;
  const int depths = p.in / kDepth;
  p.depth = (depths + p.parts - 1) / p.parts * kDepth;
  const auto run = [&](auto* kernel) {
    launch_grid(kernel, p,
                dim3(static_cast<unsigned>(column_tiles * p.parts), static_cast<unsigned>(row_tiles)),
                p.parts, 128 * kGroups, shared_bytes<kGroups>(), stream, kWhat);
  };
  switch (then) {
    case Then::nothing:
      return run(few_rows<kGroups, Then::nothing>);
    case Then::relu:
      return run(few_rows<kGroups, Then::relu>);
    case Then::gelu:
      return run(few_rows<kGroups, Then::gelu>);
    case Then::silu:
      return run(few_rows<kGroups, Then::silu>);
  }
}

bool is_aligned_to_16(const void* data) {
  return reinterpret_cast<std::uintptr_t>(data) % 16 == 0;
}

}  // namespace

bool cuda::dense_few_rows(const Dense<BFloat16>& p, CudaStream stream) {
  if (p.row_stable || p.rows > (1 << 20) || p.out % kColumns != 0 || p.in % kDepth != 0 ||
      p.out > (1 << 20) || p.in > (1 << 20) || (p.activated != nullptr && p.silu_from % 4 != 0))
    return false;
  for (const void* data :
       std::initializer_list<const void*>{p.x, p.weight, p.bias, p.residual, p.y, p.activated})
    if (!is_aligned_to_16(data)) return false;
  if (current_device_attribute(cudaDevAttrComputeCapabilityMajor, kWhat) < 9) return false;
  const int multiprocessors = current_device_attribute(cudaDevAttrMultiProcessorCount, kWhat);
  // More tiles than multiprocessors are faster as those of large products.
  constexpr std::int64_t kRows = 128;
  if (p.rows > kRows && (p.rows + kRows - 1) / kRows * (p.out / kColumns) > multiprocessors) return false;
  const Layer layer{.rows = static_cast<int>(p.rows),
                    .in = static_cast<int>(p.in),
                    .out = static_cast<int>(p.out),
                    .parts = 1,
                    .depth = static_cast<int>(p.in),
                    .weight_is_ready = p.weight_is_ready,
                    .x = native(p.x),
                    .weight = native(p.weight),
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
    launch_few<2>(layer, then, multiprocessors, stream.handle);
  else
    launch_few<1>(layer, then, multiprocessors, stream.handle);
  return true;
}

}  // namespace hstu::kernels
