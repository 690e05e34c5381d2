// The loop of the kernels for tensor cores since Ampere: a block takes a tile and walks the rows of the other
// side; copies, barriers and phases are here. What a step computes of its rows is the kernel's role.
#pragma once

#include "hstu/attention/mma/tile.cuh"
#include "hstu/device/cuda/launch.cuh"

namespace hstu::cuda {

// A step of the walk: kBlock rows of the other side from `column` on, which are the columns of the scores.
struct MmaStep {
  const MmaArguments& a;
  const MmaSide& side;
  const Work& w;
  const Coverage& seen;      // by the rows of this warp
  std::uint32_t own, stage;  // in shared memory: own rows (lane_by_rows), the step's stage
  int column;
};

// A role has its MmaTile as `Tile`; the matrices of own rows that it reads, `own` (kOwnRows = 1) or `own` and
// `own_value` (2); whether `other_value` comes before `other` in a stage (kValuesFirst); over how many sides
// of MmaArguments its blocks alternate (kSides); and what its first phase leaves to its second (Between).
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
};

template <typename Role>
__global__ void __launch_bounds__(Role::Tile::kThreads, Role::Tile::kBlocks)
    mma_kernel(const __grid_constant__ MmaArguments a) {
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
    const MmaStep now{a, side, w, seen, own, stage, column};
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

// s = the scores of the step before alpha; `unseen_score` where a row does not see a column.
template <typename T, typename Role>
__device__ __forceinline__ void multiply_scores(float (&s)[Role::Tile::kTiles][Role::Tile::kBlock / 2],
                                                const MmaStep& step, bool of_keys) {
  using Tile = typename Role::Tile;
  multiply_rows<T, Tile::kD>(s, step.own, 0, lane_by_pieces<Tile::kD>(step.stage), MmaLayout<Role>::kOtherAt);
  if (step.column < step.seen.full_lo || step.column + Tile::kBlock > step.seen.full_hi)
    mask_scores(s, step.a, of_keys, step.w, first_row<Tile>(step.w), step.column);
}

// Shared memory that a block can have on every GPU since Ampere.
inline constexpr int kMostSharedBytes = 99 * 1024;

// `items`: an upper bound of the schedule's items.
template <typename Role>
void launch_mma(const MmaArguments& arguments, std::int64_t items, cudaStream_t stream, const char* what) {
  constexpr int kBytes = MmaLayout<Role>::kWorkAt + static_cast<int>(sizeof(MmaWork));
  static_assert(kBytes <= kMostSharedBytes);
  launch_grid(mma_kernel<Role>, arguments, dim3(static_cast<unsigned>(items * Role::kSides)), 1,
              Role::Tile::kThreads, kBytes, stream, what);
}

}  // namespace hstu::cuda
