// A step of a beam search in two launches: scores of all continued prefixes, a warp for each beam; then a
// block for each user takes the best.
#include <cstdint>

#include "hstu/kernels/beam_step.h"
#include "hstu/kernels/cuda/launch.cuh"

namespace hstu::kernels {
namespace {

using namespace cuda;
using hstu::cuda::let_next_launch_begin;
using hstu::cuda::wait_for_previous_launch;

constexpr unsigned kAll = 0xffffffffu;

// Scores by beam, then by child; a place without a child has no number. And the range of each beam's scores
// that are finite: least above greatest if none is.
struct Scores {
  float *of_child, *least, *greatest;  // (R * before, C), (R * before) each
};
Scores scores_at(const BeamStep& p, float* scratch) {
  const std::int64_t rows = p.users * p.before;
  return {scratch, scratch + rows * p.codes, scratch + rows * (p.codes + 1)};
}

__device__ float warp_greatest(float x) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(kAll, x, step));
  return x;
}
__device__ float warp_sum(float x) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(kAll, x, step);
  return x;
}

__global__ void __launch_bounds__(kThreads) score_children(BeamStep p, Scores scores) {
  let_next_launch_begin();
  wait_for_previous_launch();
  const int lane = threadIdx.x % 32;
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (row >= p.users * p.before) return;
  const int codes = static_cast<int>(p.codes);
  const float* const logits = p.logits + row * codes;
  float* const of_child = scores.of_child + row * codes;
  const int node = p.node[row];
  int first = 0, children = 0;
  float least = INFINITY, greatest = -INFINITY;
  if (node >= 0) {
    first = p.first_child[node];
    children = p.first_child[node + 1] - first;
    float largest = -INFINITY, sum = 0;
    for (int c = lane; c < codes; c += 32) largest = fmaxf(largest, logits[c]);
    largest = warp_greatest(largest);
    for (int c = lane; c < codes; c += 32) sum += expf(logits[c] - largest);
    const float from = p.score[row] - (largest + logf(warp_sum(sum)));
    for (int i = lane; i < children; i += 32) {
      float score = from + logits[p.code[first + i]];
      if (isnan(score)) score = -INFINITY;
      of_child[i] = score;
      if (isfinite(score)) least = fminf(least, score), greatest = fmaxf(greatest, score);
    }
  }
  for (int i = children + lane; i < codes; i += 32) of_child[i] = NAN;
  least = -warp_greatest(-least), greatest = warp_greatest(greatest);
  if (lane == 0) scores.least[row] = least, scores.greatest[row] = greatest;
}

constexpr int kSelectThreads = 1024, kBins = 2048, kMostSorted = 2048;

// Ascending keys are descending scores, then ascending nodes.
__device__ std::uint64_t key_of(float score, int node) {
  const std::uint32_t bits = __float_as_uint(score + 0.0f);  // -0 as 0
  const std::uint32_t ascending = (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
  return static_cast<std::uint64_t>(~ascending) << 32 | static_cast<std::uint32_t>(node);
}
__device__ float score_in_key(std::uint64_t key) {
  const std::uint32_t ascending = ~static_cast<std::uint32_t>(key >> 32);
  return __uint_as_float((ascending & 0x80000000u) != 0 ? ascending & 0x7fffffffu : ~ascending);
}

struct Selection {
  std::uint64_t key[kMostSorted];
  std::int32_t row[kMostSorted];
  std::uint32_t bin[kBins];
  float least[32], greatest[32];
  std::uint32_t sums[32];
  std::uint64_t best[32];
  std::int32_t best_row[32];
  std::uint32_t count, most_bin;
};

// The range in which bins are: up to the greatest score, from one that at least `width` scores reach if the
// beams tell of one.
__device__ float2 range_of(const BeamStep& p, const Scores& scores, std::int64_t first_row, Selection& s) {
  float most = -INFINITY, of_greatest = INFINITY, of_all = INFINITY;
  int finite = 0;
  for (int b = threadIdx.x; b < p.before; b += kSelectThreads) {
    const float least = scores.least[first_row + b], greatest = scores.greatest[first_row + b];
    if (least > greatest) continue;
    ++finite;
    most = fmaxf(most, greatest);
    of_greatest = fminf(of_greatest, greatest), of_all = fminf(of_all, least);
  }
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const auto of_block = [&](float x) {  // the greatest
    x = warp_greatest(x);
    __syncthreads();
    if (lane == 0) s.greatest[warp] = x;
    __syncthreads();
    return warp_greatest(s.greatest[lane]);
  };
  most = of_block(most), of_greatest = -of_block(-of_greatest), of_all = -of_block(-of_all);
  const int count = __syncthreads_count(finite > 0);  // a lower bound of the beams that have such scores
  return {most, count >= p.width ? of_greatest : of_all};
}

// Puts the keys of all scores up to some bin into s: at least `width` of them, or all. False: too many.
__device__ bool gather(const BeamStep& p, const Scores& scores, std::int64_t first_row, Selection& s) {
  const int codes = static_cast<int>(p.codes), all = static_cast<int>(p.before) * codes;
  const float* const of_child = scores.of_child + first_row * codes;
  const float2 range = range_of(p, scores, first_row, s);
  const float width = range.x - range.y;
  const float scale = width > 0 ? (kBins - 2) / width : 0.0f;
  const auto bin_of = [&](float score) {
    if (!(score >= range.y)) return kBins - 1;
    return max(0, min(static_cast<int>((range.x - score) * scale), kBins - 2));
  };
  for (int i = threadIdx.x; i < kBins; i += kSelectThreads) s.bin[i] = 0;
  if (threadIdx.x == 0) s.count = 0, s.most_bin = kBins - 1;
  __syncthreads();
#pragma unroll 4
  for (int i = threadIdx.x; i < all; i += kSelectThreads) {
    const float score = of_child[i];
    if (score == score && score >= range.y) atomicAdd(&s.bin[bin_of(score)], 1u);
  }
  __syncthreads();
  // The first bin up to which there are enough: sums of two bins a thread.
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const std::uint32_t low = s.bin[2 * threadIdx.x], high = s.bin[2 * threadIdx.x + 1];
  std::uint32_t sum = low + high;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const std::uint32_t before = __shfl_up_sync(kAll, sum, step);
    if (lane >= step) sum += before;
  }
  if (lane == 31) s.sums[warp] = sum;
  __syncthreads();
  for (int w = 0; w < warp; ++w) sum += s.sums[w];
  const std::uint32_t wanted = static_cast<std::uint32_t>(p.width), before = sum - low - high;
  if (before < wanted && sum >= wanted) s.most_bin = 2 * threadIdx.x + (before + low >= wanted ? 0 : 1);
  __syncthreads();
  const int most_bin = static_cast<int>(s.most_bin);
#pragma unroll 4
  for (int i = threadIdx.x; i < all; i += kSelectThreads) {
    const float score = of_child[i];
    if (score != score || bin_of(score) > most_bin) continue;
    const std::uint32_t to = atomicAdd(&s.count, 1u);
    if (to >= kMostSorted) continue;
    const int row = static_cast<int>(first_row) + i / codes;
    s.key[to] = key_of(score, p.first_child[p.node[row]] + i % codes);
    s.row[to] = row;
  }
  __syncthreads();
  return s.count <= kMostSorted;
}

__device__ void sort(Selection& s) {
  int size = 2;
  while (size < static_cast<int>(s.count)) size *= 2;
  for (int i = s.count + threadIdx.x; i < size; i += kSelectThreads) s.key[i] = ~std::uint64_t{0};
  __syncthreads();
  for (int run = 2; run <= size; run *= 2) {
    for (int step = run / 2; step > 0; step /= 2) {
      for (int pair = threadIdx.x; pair < size / 2; pair += kSelectThreads) {
        const int i = pair / step * step * 2 + pair % step, j = i + step;
        const std::uint64_t a = s.key[i], b = s.key[j];
        if ((a > b) != ((i & run) != 0)) {
          s.key[i] = b, s.key[j] = a;
          const std::int32_t row = s.row[i];
          s.row[i] = s.row[j], s.row[j] = row;
        }
      }
      __syncthreads();
    }
  }
}

__device__ void put(const BeamStep& p, std::int64_t to, std::uint64_t key, int row, bool is_beam) {
  const int node = is_beam ? static_cast<int>(key & 0xffffffffu) : -1;
  p.next_score[to] = is_beam ? score_in_key(key) : -INFINITY;
  p.next_node[to] = node;
  p.next_code[to] = is_beam ? p.first_row + p.code[node] : -1;
  if (p.next_ancestors == nullptr) return;
  const int steps = static_cast<int>(p.steps);
  std::int32_t* const ancestors = p.next_ancestors + to * (steps + 1);
  for (int i = 0; i < steps; ++i) ancestors[i] = p.ancestors[static_cast<std::int64_t>(row) * steps + i];
  ancestors[steps] = row;
}

// More scores are equal, or nearly so, than can be sorted: finds one beam after another.
__device__ void select_one_by_one(const BeamStep& p, const Scores& scores, std::int64_t first_row,
                                  std::int64_t to, Selection& s) {
  const int codes = static_cast<int>(p.codes), all = static_cast<int>(p.before) * codes;
  const float* const of_child = scores.of_child + first_row * codes;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  constexpr std::uint64_t kNone = ~std::uint64_t{0};
  const auto take = [](std::uint64_t& best, int& row, std::uint64_t key, int other) {
    if (key < best) best = key, row = other;
  };
  std::uint64_t last = 0;
  for (int i = 0; i < p.width; ++i) {
    std::uint64_t best = kNone;
    int row = static_cast<int>(first_row);
    for (int at = threadIdx.x; at < all; at += kSelectThreads) {
      const float score = of_child[at];
      if (score != score) continue;
      const int of = static_cast<int>(first_row) + at / codes;
      const std::uint64_t key = key_of(score, p.first_child[p.node[of]] + at % codes);
      if (i == 0 || key > last) take(best, row, key, of);
    }
    const auto of_warp = [&] {
#pragma unroll
      for (int step = 16; step > 0; step /= 2) {
        const std::uint64_t key = __shfl_xor_sync(kAll, best, step);
        const int other = __shfl_xor_sync(kAll, row, step);
        take(best, row, key, other);
      }
    };
    of_warp();
    __syncthreads();
    if (lane == 0) s.best[warp] = best, s.best_row[warp] = row;
    __syncthreads();
    best = s.best[lane], row = s.best_row[lane];
    of_warp();
    last = best;
    if (threadIdx.x == 0)
      put(p, to + i, best, best == kNone ? static_cast<int>(first_row) : row, best != kNone);
    if (best == kNone) last = kNone - 1;
  }
}

__global__ void __launch_bounds__(kSelectThreads) select(BeamStep p, Scores scores) {
  let_next_launch_begin();
  wait_for_previous_launch();
  __shared__ Selection s;
  const std::int64_t first_row = blockIdx.x * p.before, to = blockIdx.x * p.width;
  if (!gather(p, scores, first_row, s)) return select_one_by_one(p, scores, first_row, to, s);
  sort(s);
  const int count = static_cast<int>(s.count);
  for (int i = threadIdx.x; i < p.width; i += kSelectThreads) {
    const bool is_beam = i < count;
    put(p, to + i, is_beam ? s.key[i] : 0, is_beam ? s.row[i] : static_cast<int>(first_row), is_beam);
  }
}

}  // namespace

void beam_step(const BeamStep& p, CudaStream stream) {
  if (p.users == 0) return;
  require(p.users * p.before * p.codes < (std::int64_t{1} << 31), "beam search: {} scores are too many",
          p.users * p.before * p.codes);
  const Scratch<float> scratch(stream, beam_step_floats(p));
  const Scores scores = scores_at(p, scratch.data());
  hstu::cuda::launch("beam scores", score_children, blocks_for(p.users * p.before, kWarps), kThreads,
                     stream.handle, p, scores);
  hstu::cuda::launch("beam selection", select, dim3(static_cast<unsigned>(p.users)), kSelectThreads,
                     stream.handle, p, scores);
}

}  // namespace hstu::kernels
