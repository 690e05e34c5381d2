// Products on Hopper's tensor cores: wgmma on tiles of 128 x 256 that the tensor copy engine brings, 64 deep
// at a time, in four stages. The blocks of a cluster of two compute tiles one above the other and load half
// of the right factor each, for both. Two warpgroups compute 64 rows each; one warp of a third loads, and two
// may add up columns. Blocks remain until all tiles are computed; neighbours in time share rows of the left
// factor in the L2 cache.
#include "hstu/device/cuda/current_device.h"
#include "hstu/device/cuda/launch.cuh"
#include "hstu/device/cuda/mma.cuh"
#include "hstu/device/cuda/wgmma.cuh"
#include "hstu/kernels/cuda/gemm_sm90.cuh"
#include "hstu/kernels/cuda/gemm_sm90_results.cuh"
#include "hstu/kernels/cuda/gemm_sm90_sums.cuh"
#include "hstu/kernels/cuda/gemm_sm90_tile.cuh"
#include "hstu/kernels/cuda/part_sums.cuh"

namespace hstu::kernels::cuda {
namespace {

using namespace sm90;

// ---- the warp that loads

// by_depth: the rows of the factor run along k, and a box is 64 deep; otherwise it is 64 rows of the product.
template <bool a_by_depth, bool b_by_depth, typename Out>
__device__ void load_tiles(const Arguments<Out>& p, const Shared& shared) {
  const int rank = static_cast<int>(cluster_rank());
  constexpr int kHalf = kColumns / kCluster;
  Turn turn;
  for (int index = blockIdx.x / kCluster; index < p.tiles; index += gridDim.x / kCluster) {
    const Tile tile = tile_of(p, index);
    const int row = tile.row + rank * kBlockRows, column = tile.column + rank * kHalf;
    for (int step = 0; step < tile.steps; ++step, turn.next()) {
      const int k = tile.k + step * kDepth;
      const std::uint32_t full = shared.full(turn.stage), a = shared.a(turn.stage),
                          b = shared.b(turn.stage) + rank * (kBytesB / kCluster);
      barrier_wait_idle(shared.empty(turn.stage), turn.parity ^ 1);
      barrier_expect(full, kStageBytes);
      if constexpr (a_by_depth) {
        load_matrix_box(a, &p.a, k, row, full);
      } else {
#pragma unroll
        for (int i = 0; i < kBlockRows / kBox; ++i)
          load_matrix_box(a + i * kBoxBytes, &p.a, row + i * kBox, k, full);
      }
      if constexpr (b_by_depth) {
        load_matrix_box_to_both(b, &p.b, k, column, full);
      } else {
#pragma unroll
        for (int i = 0; i < kHalf / kBox; ++i)
          load_matrix_box_to_both(b + i * kBoxBytes, &p.b, column + i * kBox, k, full);
      }
    }
    // What is added to the product comes through the same stages, 128 columns in each.
    for (int half = 0; half < (p.adds ? 2 : 0); ++half, turn.next()) {
      const std::uint32_t full = shared.full(turn.stage);
      barrier_wait_idle(shared.empty(turn.stage), turn.parity ^ 1);
      barrier_expect(full, kAddedBytes);
#pragma unroll
      for (int i = 0; i < kHalf / kBox; ++i)
        load_matrix_box(shared.a(turn.stage) + i * kAddedBytes / 2, &p.added,
                        tile.column + half * kHalf + i * kBox, row, full);
    }
  }
}

// ---- the warpgroups that compute

template <bool a_by_depth, bool b_by_depth>
__device__ void multiply_tile(Sums& sums, const Tile& tile, const Shared& shared, int group, Turn& turn) {
  int previous = 0;
  for (int step = 0; step < tile.steps; ++step) {
    barrier_wait(shared.full(turn.stage), turn.parity);
    const std::uint32_t a = a_by_depth ? contiguous_k(shared.a(turn.stage) + group * kGroupRows * 128)
                                       : contiguous_mn(shared.a(turn.stage) + group * kBoxBytes, kBoxBytes);
    const std::uint32_t b =
        b_by_depth ? contiguous_k(shared.b(turn.stage)) : contiguous_mn(shared.b(turn.stage), kBoxBytes);
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < kDepth / 16; ++i)
      Wgmma<Element, kColumns>::template ss<!a_by_depth, !b_by_depth>(
          sums, descriptor(a + i * (a_by_depth ? 2 : 128)), descriptor(b + i * (b_by_depth ? 2 : 128)),
          step > 0 || i > 0);
    wgmma_commit();
    if (step > 0) {
      wgmma_wait<1>();
      release(shared, previous);
    }
    previous = turn.stage;
    turn.next();
  }
  wgmma_wait<0>();
  release(shared, previous);
}

template <bool a_by_depth, bool b_by_depth, Then then, typename Out>
__device__ void compute_tiles(const Arguments<Out>& p, const Shared& shared, int group) {
  Turn turn;
  StagedResults staged(shared, group);
  Sums sums;
  const int row_in_tile = static_cast<int>(cluster_rank()) * kBlockRows + group * kGroupRows;
  for (int index = blockIdx.x / kCluster; index < p.tiles; index += gridDim.x / kCluster) {
    const Tile tile = tile_of(p, index);
    multiply_tile<a_by_depth, b_by_depth>(sums, tile, shared, group, turn);
    if constexpr (std::is_same_v<Out, float>)
      store(p, sums, tile.row + row_in_tile, tile.column, tile.part);
    else
      store<then>(p, sums, tile.row + row_in_tile, tile.column, shared, group, turn, staged);
  }
  if (threadIdx.x % 32 == 0) wait_for_store_reads<0>();
}

template <bool a_by_depth, bool b_by_depth, typename Out, Then then = Then::nothing>
__global__ void __launch_bounds__(kAllThreads, 1) wgmma_tiles(const __grid_constant__ Arguments<Out> p) {
  extern __shared__ char memory[];
  const Shared shared{(shared_address(memory) + 1023) & ~1023u};
  const int group = threadIdx.x / kGroupThreads;
  constexpr bool may_sum = !b_by_depth && std::is_same_v<Out, float>;
  const bool sums = may_sum && p.column_parts != nullptr;
  if (threadIdx.x == 0) {
    prefetch_map(&p.a);
    prefetch_map(&p.b);
    for (int stage = 0; stage < kStages; ++stage) {
      barrier_init(shared.full(stage), 1);
      barrier_init(shared.empty(stage), kCluster * (kGroups * kGroupThreads / 32 + (sums ? kSumWarps : 0)));
    }
    barrier_init_fence();
  }
  cluster_barrier();
  wait_for_previous_launch();
  if (group == kGroups) {
    give_registers<may_sum ? 56 : 40>();
    const int warp = threadIdx.x % kGroupThreads / 32;
    if (threadIdx.x == kGroups * kGroupThreads) load_tiles<a_by_depth, b_by_depth>(p, shared);
    if constexpr (may_sum)
      if (sums && warp > 0 && warp <= kSumWarps) add_columns(p, shared, warp - 1);
  } else {
    take_registers<may_sum ? 224 : 232>();
    compute_tiles<a_by_depth, b_by_depth, then>(p, shared, group);
  }
  cluster_barrier();  // until the other block no longer writes here
}

static_assert(hopper_tiles(132).rows == kPairRows && hopper_tiles(132).columns == kColumns &&
              hopper_tiles(132).step == kDepth && hopper_tiles(132).wanted == 132 / kCluster);

struct Plan {
  std::int64_t clusters, row_pairs, column_tiles;  // clusters: 0 if the device is no Hopper GPU
  Parts parts;
  std::int64_t tiles() const { return row_pairs * column_tiles * parts.count; }
};
template <typename Out>
Plan plan_of(const Gemm<BFloat16, Out>& g) {
  if (current_device_attribute(cudaDevAttrComputeCapabilityMajor, "gemm") != 9) return {};
  const std::int64_t multiprocessors = current_device_attribute(cudaDevAttrMultiProcessorCount, "gemm");
  const std::int64_t clusters = multiprocessors / kCluster, row_pairs = (g.m + kPairRows - 1) / kPairRows,
                     column_tiles = (g.n + kColumns - 1) / kColumns;
  return {clusters, row_pairs, column_tiles,
          hopper_parts(g.m, g.n, g.k, std::is_same_v<Out, float>, multiprocessors)};
}

// The forms that training has: x W, or an activation of it, and dy W^T, or a slope's part of it, into bf16,
// x^T dy into fp32.
template <typename Out>
auto* kernel_of(const Product<BFloat16, Out>& p) {
  if constexpr (std::is_same_v<Out, float>)
    return wgmma_tiles<false, false, float>;
  else if (p.gemm.b.op == Op::transpose)
    return p.mask == nullptr ? wgmma_tiles<true, true, Element>
           : p.gelu          ? wgmma_tiles<true, true, Element, Then::gelu_slope>
                             : wgmma_tiles<true, true, Element, Then::relu_slope>;
  else if (p.gelu)
    return p.activated == nullptr ? wgmma_tiles<true, false, Element, Then::gelu>
                                  : wgmma_tiles<true, false, Element, Then::gelu_beside>;
  else
    return p.relu ? wgmma_tiles<true, false, Element, Then::relu> : wgmma_tiles<true, false, Element>;
}

template <typename Out>
bool suits(const Product<BFloat16, Out>& p, const Plan& plan) {
  if (plan.clusters == 0) return false;
  const Gemm<BFloat16, Out>& g = p.gemm;
  // One matrix at most is added, with factor 1, or is a mask.
  const int others = (g.beta != 0 ? 1 : 0) + (p.residual != nullptr ? 1 : 0) + (p.mask != nullptr ? 1 : 0);
  const bool sums = g.alpha == 1 && others <= 1 && (g.beta == 0 || g.beta == 1);
  const bool is_forward = g.b.op == Op::none;
  bool form = false;
  if constexpr (std::is_same_v<Out, float>)  // added to C, or nothing else
    form = g.a.op == Op::transpose && is_forward && p.bias == nullptr && p.residual == nullptr &&
           p.mask == nullptr && !p.relu && !p.gelu;
  else
    form = g.a.op == Op::none &&
           (is_forward ? p.mask == nullptr : !p.relu && p.gelu == (p.activated != nullptr));
  constexpr std::int64_t kMost = std::int64_t{1} << 30;  // coordinates are 32 bits
  const auto aligned = [](const void* data) { return reinterpret_cast<std::uintptr_t>(data) % 16 == 0; };
  const bool stores = aligned(g.c) && aligned(p.bias) && aligned(p.residual) && aligned(p.mask) &&
                      aligned(p.activated) && g.stride_c % 8 == 0 && g.n % 8 == 0;
  const bool activates = p.activated == nullptr || (p.silu_from % kBox == 0 && p.stride_activated % 8 == 0);
  if (!std::is_same_v<Out, float> && p.column_sums.to != nullptr) return false;
  if (!form || !sums || !stores || !activates || g.m > kMost || g.n > kMost || g.k > kMost) return false;
  // Below, smaller tiles use more multiprocessors.
  return plan.tiles() >= kLeastHopperTiles && plan.tiles() < (std::int64_t{1} << 30);
}

}  // namespace

template <typename Out>
bool multiply_sm90(const Product<BFloat16, Out>& p, CudaStream stream) {
  const Gemm<BFloat16, Out>& g = p.gemm;
  const Plan plan = plan_of(g);
  if (!suits(p, plan)) return false;
  const bool a_by_depth = g.a.op == Op::none, b_by_depth = g.b.op == Op::transpose;
  Arguments<Native<Out>> arguments{.a = a_by_depth ? matrix_map(g.a.data, g.m, g.k, g.a.stride, kBlockRows)
                                                   : matrix_map(g.a.data, g.k, g.m, g.a.stride, kDepth),
                                   .b = b_by_depth
                                            ? matrix_map(g.b.data, g.n, g.k, g.b.stride, kColumns / kCluster)
                                            : matrix_map(g.b.data, g.k, g.n, g.b.stride, kDepth),
                                   .e = {g.m, g.n, g.k, plan.parts.depth},
                                   .column_tiles = static_cast<int>(plan.column_tiles),
                                   .row_pairs = static_cast<int>(plan.row_pairs),
                                   .tiles = static_cast<int>(plan.tiles()),
                                   .epilogue = epilogue_of(p)};
  if constexpr (!std::is_same_v<Out, float>) {
    arguments.c = matrix_map(g.c, g.m, g.n, g.stride_c, kWarpRows);
    const bool activates = p.activated != nullptr && p.silu_from < g.n;
    arguments.activated_from = activates ? static_cast<int>(p.silu_from) : -1;
    arguments.activated = activates
                              ? matrix_map(p.activated, g.m, g.n - p.silu_from, p.stride_activated, kWarpRows)
                              : arguments.c;
    const Out* const other = p.mask != nullptr ? p.mask : p.residual;
    arguments.adds = other != nullptr || g.beta != 0;
    arguments.added = matrix_map(other != nullptr ? other : g.c, g.m, g.n, g.stride_c, kBlockRows);
  }
  const std::int64_t column_parts = p.column_sums.to != nullptr ? plan.parts.count * plan.row_pairs : 0;
  Scratch<float> sums_of_columns(stream, column_parts * g.n);
  if (column_parts > 0) arguments.column_parts = sums_of_columns.data();
  Product<BFloat16, Out> product = p;
  product.column_sums = {};
  run_in_parts(product, plan.parts, stream, [&](float* sums) {
    arguments.parts = sums;
    const int clusters = static_cast<int>(std::min(plan.clusters, plan.tiles()));
    launch_early(kernel_of(p), arguments, kCluster * clusters, kCluster, kAllThreads, kSharedBytes,
                 stream.handle, "gemm");
  });
  if (column_parts > 0) {
    const PartSum sum = sum_of(sums_of_columns.data(), column_parts, g.n, g.n, p.column_sums);
    add_parts({&sum, 1}, std::move(sums_of_columns), stream);
  }
  return true;
}

template bool multiply_sm90(const Product<BFloat16>&, CudaStream);
template bool multiply_sm90(const Product<BFloat16, float>&, CudaStream);

}  // namespace hstu::kernels::cuda
