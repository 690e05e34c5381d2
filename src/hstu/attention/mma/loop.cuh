// The loop of the kernels for tensor cores since Ampere: a block takes a tile and walks the rows of the other
// side; copies, barriers and phases are here. What a step computes of its rows is the kernel's role.
#pragma once

#include <type_traits>

#include "hstu/attention/cuda/hide_keys.cuh"
#include "hstu/attention/cuda/table_gradients.cuh"
#include "hstu/attention/mma/tile.cuh"
#include "hstu/device/cuda/launch.cuh"

namespace hstu::cuda {

// A step of the walk: kBlock rows of the other side from `column` on, which are the columns of the scores.
template <typename Arguments>
struct MmaStep {
  const Arguments& a;
  const MmaSide& side;
  const Work& w;
  const Coverage& seen;      // by the rows of this warp
  std::uint32_t own, stage;  // in shared memory: own rows (lane_by_rows), the step's stage
  int column;
};

template <typename Arguments>
inline constexpr bool kHasBias = std::is_same_v<Arguments, BiasedMmaArguments>;

// A role has its arguments (MmaArguments or BiasedMmaArguments); its MmaTile as `Tile`; the matrices of own
// rows that it reads, `own` (kOwnRows = 1) or `own` and `own_value` (2); whether `other_value` comes before
// `other` in a stage (kValuesFirst); over how many sides of MmaArguments its blocks alternate (kSides); and
// what its first phase leaves to its second (Between).
//
// With one stage the first phase reads no other rows than the stage's first matrix, and the second phase no
// others than the second: the barrier between them is where the buffer of the first is given back. With two
// stages there is no barrier between the phases, and both matrices are there in either.
template <typename Role>
struct MmaLayout {
  using Tile = typename Role::Tile;
  static constexpr int kOwnValueAt = Tile::kOwnBytes, kFirstAt = Role::kOwnRows * Tile::kOwnBytes,
                       kSecondAt = kFirstAt + Tile::kBlockBytes;
  static constexpr int kOtherAt = Role::kValuesFirst ? kSecondAt : kFirstAt,
                       kOtherValueAt = Role::kValuesFirst ? kFirstAt : kSecondAt;
  static constexpr int kWorkAt = kFirstAt + Tile::kStages * Tile::kStageBytes;  // the block's MmaWork
  // The memory of each warp for gradients of tables, where a role sums them.
  using Memory = GradientMemory<Tile::kBlock>;
  static constexpr int kMemoryAt = (kWorkAt + static_cast<int>(sizeof(MmaWork)) + 15) / 16 * 16;
  static constexpr int kBytes =
      kMemoryAt + (Role::kSumsTables ? Tile::kWarps * static_cast<int>(sizeof(Memory)) : 0);
};

template <typename Role>
__global__ void __launch_bounds__(Role::Tile::kThreads, Role::Tile::kBlocks)
    mma_kernel(const __grid_constant__ typename Role::Arguments a) {
  using Tile = typename Role::Tile;
  using At = MmaLayout<Role>;
  constexpr bool kTwo = Tile::kStages == 2;
  extern __shared__ __align__(128) char shared[];
  wait_for_previous_launch();
  let_next_launch_begin();
  const int item = static_cast<int>(blockIdx.x) / Role::kSides;
  if (item >= a.schedule.counters[1]) return;
  const MmaSide& side = a.sides[blockIdx.x % Role::kSides];
  MmaWork& work = *reinterpret_cast<MmaWork*>(shared + At::kWorkAt);
  plan_mma<Tile>(a, side, item, work);
  const Work& w = work.tile;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const Coverage& seen = work.warps[warp];
  const std::uint32_t base = shared_address(shared);
  const std::uint32_t own = lane_by_rows<Tile::kD>(base + warp * Tile::kWarpBytes);
  const AttentionInput& first = Role::kValuesFirst ? side.other_value : side.other;
  const AttentionInput& second = Role::kValuesFirst ? side.other : side.other_value;
  load_own<Tile>(base, side.own, w, a.head_dim);
  if constexpr (Role::kOwnRows == 2) load_own<Tile>(base + At::kOwnValueAt, side.own_value, w, a.head_dim);
  load_block<Tile>(base + At::kFirstAt, first, w, 0, a.head_dim);
  if constexpr (kTwo) load_block<Tile>(base + At::kSecondAt, second, w, 0, a.head_dim);
  if constexpr (Role::kSumsTables)
    reinterpret_cast<typename At::Memory*>(shared + At::kMemoryAt)[warp].clear();
  Role role;
#pragma unroll 1
  for (int step = 0; step < w.steps; ++step) {
    const std::uint32_t stage = base + (kTwo ? step % 2 * Tile::kStageBytes : 0);
    const std::uint32_t next = kTwo ? 2 * base + Tile::kStageBytes - stage : base;
    wait_for_copies();
    __syncthreads();
    if constexpr (!kTwo) {
      load_block<Tile>(base + At::kSecondAt, second, w, step, a.head_dim);
    } else if (step + 1 < w.steps) {
      load_block<Tile>(next + At::kFirstAt, first, w, step + 1, a.head_dim);
      load_block<Tile>(next + At::kSecondAt, second, w, step + 1, a.head_dim);
    }
    const int column = w.walk[step] * Tile::kBlock;
    const bool some = sees_some(seen.any, column, column + Tile::kBlock);
    const MmaStep<typename Role::Arguments> now{a, side, w, seen, own, stage, column};
    typename Role::Between between;
    if (some) role.first_phase(now, between);
    if constexpr (!kTwo) {
      wait_for_copies();
      __syncthreads();
      if (step + 1 < w.steps) load_block<Tile>(base + At::kFirstAt, first, w, step + 1, a.head_dim);
    }
    if (some) role.second_phase(now, between);
  }
  role.store(a, side, w);
}

// The scores of 16 own rows of a step, for their bias.
template <typename Tile, bool kOfKeys>
__device__ __forceinline__ ScoreTile<kOfKeys> score_tile(const MmaStep<BiasedMmaArguments>& step, int tile) {
  const int row = first_row<Tile>(step.w) - static_cast<int>(threadIdx.x) % 32 / 4 + 16 * tile;
  return {step.a.bias, step.w.head, step.w.begin, step.w.n, row, step.column};
}

// What scores are to be multiplied by: with a bias they are already.
template <typename Arguments>
__device__ __forceinline__ float score_factor(const MmaStep<Arguments>& step) {
  return kHasBias<Arguments> ? 1.0f : step.a.half_alpha;
}

// s = the scores of the step before alpha, or half of them where there is a bias; where a row does not see a
// column `unseen_score`, for a softmax -infinity.
template <typename T, typename Role, typename Arguments>
__device__ __forceinline__ void multiply_scores(float (&s)[Role::Tile::kTiles][Role::Tile::kBlock / 2],
                                                const MmaStep<Arguments>& step, bool of_keys) {
  using Tile = typename Role::Tile;
  multiply_rows<T, Tile::kD>(s, step.own, 0, lane_by_pieces<Tile::kD>(step.stage), MmaLayout<Role>::kOtherAt);
  if constexpr (kHasBias<Arguments>) {
#pragma unroll
    for (int m = 0; m < Tile::kTiles; ++m) {
      const auto add = [&](auto tile_of_keys) {
        const auto tile = score_tile<Tile, decltype(tile_of_keys)::value>(step, m);
        ReadBias<Tile::kBlock, decltype(tile_of_keys)::value>(tile).add_to(s[m], tile, step.a.half_alpha);
      };
      if (of_keys)
        add(std::true_type{});
      else
        add(std::false_type{});
    }
  }
  constexpr bool kSoftmax = std::is_same_v<Arguments, SoftmaxMmaArguments>;
  if (step.column < step.seen.full_lo || step.column + Tile::kBlock > step.seen.full_hi)
    mask_scores(s, step.a, of_keys, step.w, first_row<Tile>(step.w), step.column,
                kSoftmax ? -INFINITY : unseen_score(score_factor(step)));
  if constexpr (kSoftmax) {
    if (step.a.hidden.period == 0) return;
#pragma unroll
    for (int m = 0; m < Tile::kTiles; ++m) {
      const int row = first_row<Tile>(step.w) + 16 * m,
                column = step.column + 2 * static_cast<int>(threadIdx.x % 4);
      if (of_keys)
        hide_key_rows<Tile::kBlock>(s[m], step.a.hidden, step.w.c, row, column);
      else
        hide_keys<Tile::kBlock>(s[m], step.a.hidden, step.w.c, row, column);
    }
  }
}

// Shared memory that a block can have on every GPU since Ampere.
inline constexpr int kMostSharedBytes = 99 * 1024;

// `items`: an upper bound of the schedule's items.
template <typename Role>
void launch_mma(const typename Role::Arguments& arguments, std::int64_t items, cudaStream_t stream,
                const char* what) {
  constexpr int kBytes = MmaLayout<Role>::kBytes;
  static_assert(kBytes <= kMostSharedBytes);
  launch_grid(mma_kernel<Role>, arguments, dim3(static_cast<unsigned>(items * Role::kSides)), 1,
              Role::Tile::kThreads, kBytes, stream, what);
}

}  // namespace hstu::cuda
