// Counting the items that come before a target, on GPUs.
#include "hstu/kernels/cuda/rows.cuh"
#include "hstu/kernels/cuda/score_tile.cuh"

namespace hstu::kernels {
namespace {

using namespace cuda;

__global__ void find_targets(TargetScores p) {
  hstu::cuda::wait_for_previous_launch();
  const std::int64_t q = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (q >= p.queries.n) return;
  const std::int64_t at = ids_below(p.items.ids, p.items.n, p.targets[q]), width = p.items.width;
  if (at == p.items.n || p.items.ids[at] != p.targets[q]) return;
  p.scores[q] = score_of(p.queries.vectors + q * width, p.items.rows + at * width, width);
  p.found[q] = 1;
}

// Where a target is among the items of a block.
struct TargetPlace {
  std::int32_t smaller;  // items with a smaller id
  std::int32_t own;      // 1: the target is the next one; else 0
};

__global__ void find_places(CountBetter p, TargetPlace* places) {
  hstu::cuda::wait_for_previous_launch();
  const std::int64_t q = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (q >= p.queries.n) return;
  const std::int64_t at = ids_below(p.items.ids, p.items.n, p.targets[q]);
  places[q] = {static_cast<std::int32_t>(at),
               at < p.items.n && p.items.ids[at] == p.targets[q] ? std::int32_t{1} : std::int32_t{0}};
}

// Whether the item at `at` with score `s` comes before the target. Written so that NaN does.
__device__ bool comes_before(std::int64_t at, float s, const TargetPlace& place, float score) {
  if (at < place.smaller) return !(s < score);
  return at >= place.smaller + place.own && !(s <= score);
}

__device__ void add_to(std::int64_t* count, std::int64_t n) {
  // Integers: the order does not matter.
  if (n != 0) atomicAdd(reinterpret_cast<unsigned long long*>(count), static_cast<unsigned long long>(n));
}

struct Count {
  std::int64_t queries, items;
  const TargetPlace* places;
  const float* scores;
  std::int64_t* better;

  __device__ void operator()(const ScoresOfThread& t) const {
#pragma unroll
    for (int i = 0; i < kScoreEach; ++i) {
      const std::int64_t q = t.query(i);
      int count = 0;
      if (q < queries) {
        const TargetPlace place = places[q];
        const float score = scores[q];
#pragma unroll
        for (int j = 0; j < kScoreEach; ++j)
          count += t.item(j) < items && comes_before(t.item(j), t.scores[i][j], place, score) ? 1 : 0;
      }
      for (int step = 8; step > 0; step /= 2) count += __shfl_xor_sync(0xffffffffu, count, step);
      if (threadIdx.x % 16 == 0 && q < queries) add_to(better + q, count);
    }
  }
};

// A warp takes a query's excluded items back.
__global__ void uncount_excluded(CountBetter p, const TargetPlace* places) {
  hstu::cuda::wait_for_previous_launch();
  const std::int64_t q = static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32,
                     width = p.items.width;
  if (q >= p.queries.n) return;
  const std::int64_t begin = p.queries.excluded_offsets[q], end = p.queries.excluded_offsets[q + 1];
  std::int64_t counted = 0;
  for (std::int64_t i = begin + lane(); i < end; i += 32) {
    const std::int64_t at = ids_below(p.items.ids, p.items.n, p.queries.excluded[i]);
    if (at == p.items.n || p.items.ids[at] != p.queries.excluded[i]) continue;
    const float s = score_of(p.queries.vectors + q * width, p.items.rows + at * width, width);
    counted += comes_before(at, s, places[q], p.scores[q]) ? 1 : 0;
  }
  add_to(p.better + q, -counted);
  add_to(p.excluded_better + q, counted);
}

__global__ void least_not_finite(NotFinite p) {
  hstu::cuda::wait_for_previous_launch();
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < p.n && !isfinite(p.norms[i]))
    atomicMin(reinterpret_cast<unsigned long long*>(p.first_bad),
              static_cast<unsigned long long>(p.first + i));
}

}  // namespace

void target_scores(const TargetScores& p, CudaStream stream) {
  if (p.queries.n == 0) return;
  hstu::cuda::launch("target scores", find_targets, blocks_for(p.queries.n, kThreads), kThreads,
                     stream.handle, p);
}

void count_better(const CountBetter& p, CudaStream stream) {
  if (p.items.n == 0 || p.queries.n == 0) return;
  require(p.items.n < (std::int64_t{1} << 31), "{} items are too many for one block", p.items.n);
  const Scratch<TargetPlace> places(stream, p.queries.n);
  hstu::cuda::launch("count, places", find_places, blocks_for(p.queries.n, kThreads), kThreads, stream.handle,
                     p, places.data());
  visit_scores("count", score_factors(p.items, p.queries.vectors, p.queries.n),
               Count{p.queries.n, p.items.n, places.data(), p.scores, p.better}, stream);
  if (p.queries.excluded_offsets != nullptr)
    hstu::cuda::launch("count, excluded", uncount_excluded, blocks_for(p.queries.n, kWarps), kThreads,
                       stream.handle, p, places.data());
}

void find_not_finite(const NotFinite& p, CudaStream stream) {
  if (p.n > 0)
    hstu::cuda::launch("not finite", least_not_finite, blocks_for(p.n, kThreads), kThreads, stream.handle, p);
}

}  // namespace hstu::kernels
