#include <algorithm>
#include <limits>

#include "hstu/device/cuda/launch.cuh"
#include "hstu/device/memory_pool.h"
#include "hstu/optimizer/clip_scale.h"
#include "hstu/optimizer/dense_update.h"

namespace hstu::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kSumThreads = 1024;
constexpr std::int64_t kChunk = 1 << 17;  // elements of a block that sums
constexpr int kEach = 4;                  // elements of a thread that updates, all under way together
constexpr std::int64_t kUpdated = kEach * kThreads;
constexpr std::size_t kMostParameters = 128;  // of one launch: they travel as its argument

// Lists that one launch works on, and the first block of each; of those that are not there, none.
template <typename T>
struct Many {
  T one[kMostParameters];
  unsigned first[kMostParameters];

  // Of this block.
  __device__ std::size_t list() const {
    std::size_t at = 0;
    for (std::size_t step = kMostParameters / 2; step > 0; step /= 2)
      if (first[at + step] <= blockIdx.x) at += step;
    return at;
  }
};

__global__ void update(UpdateNumbers numbers, const __grid_constant__ Many<DenseUpdate> all,
                       const float* factor) {
  wait_for_previous_launch();
  if (factor != nullptr) {
    numbers.gradient_scale = *factor;
    if (isnan(numbers.gradient_scale)) return;
  }
  const std::size_t list = all.list();
  const DenseUpdate u = all.one[list];
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x - all.first[list]) * kUpdated + threadIdx.x;
  if (!numbers.is_adam) {
    update_elements(numbers, u, begin, min(begin + kUpdated, u.end), kThreads);
    return;
  }
  float gradient[kEach] = {}, value[kEach] = {}, m[kEach] = {}, v[kEach] = {};
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    const std::int64_t i = begin + k * kThreads;
    if (i < u.end) gradient[k] = u.gradient[i], value[k] = u.value[i], m[k] = u.m[i], v[k] = u.v[i];
  }
  update_elements(numbers, {kEach, gradient, value, m, v}, 0, kEach);
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    const std::int64_t i = begin + k * kThreads;
    if (i < u.end) u.value[i] = value[k], u.m[i] = m[k], u.v[i] = v[k];
  }
}

// In double and in a fixed order: `size` terms by one block of kSumThreads.
template <typename Term>
__device__ double sum(std::int64_t size, const Term& term) {
  __shared__ double sums[kSumThreads];
  double mine = 0;
#pragma unroll 16
  for (std::int64_t i = threadIdx.x; i < size; i += kSumThreads) mine += term(i);
  sums[threadIdx.x] = mine;
  for (int half = kSumThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  return sums[0];
}

// partial (blocks).
__global__ void squares_of_chunks(const __grid_constant__ Many<FloatList> lists, double* partial) {
  wait_for_previous_launch();
  const std::size_t at = lists.list();
  const FloatList& list = lists.one[at];
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x - lists.first[at]) * kChunk;
  const double result = sum(begin + kChunk < list.size ? kChunk : list.size - begin, [&](std::int64_t i) {
    const double x = list.values[begin + i];
    return x * x;
  });
  if (threadIdx.x == 0) partial[blockIdx.x] = result;
}

// One block for each list.
__global__ void sum_chunks(const __grid_constant__ Many<FloatList> lists, const double* partial,
                           double* result) {
  wait_for_previous_launch();
  const std::int64_t mine = (lists.one[blockIdx.x].size + kChunk - 1) / kChunk;
  const double* const from = partial + lists.first[blockIdx.x];
  const double total = sum(mine, [&](std::int64_t i) { return from[i]; });
  if (threadIdx.x == 0) result[blockIdx.x] = total;
}

// One thread adds up, in the order and with the rounding of the host. All threads read for it.
__global__ void judge(const UpdateJudgement j) {
  __shared__ double some[kThreads];
  wait_for_previous_launch();
  double squares = 0;
  bool finite = isfinite(*j.loss) && !isnan(*j.factor);
  for (std::int64_t first = 0; first < j.count; first += kThreads) {
    if (first + threadIdx.x < j.count) some[threadIdx.x] = j.sums[first + threadIdx.x];
    __syncthreads();
    for (int i = 0; threadIdx.x == 0 && i < kThreads && first + i < j.count; ++i) {
      finite = finite && isfinite(some[i]);
      if (first + i < j.parameters) squares += some[i];
    }
    __syncthreads();
  }
  if (threadIdx.x > 0) return;
  const double norm = sqrt(squares);
  *j.facts = {*j.loss, norm, finite};
  *j.factor = finite ? static_cast<float>(clip_scale(norm, j.max_norm)) : NAN;
}

std::int64_t size_of(const DenseUpdate& u) {
  return u.end;
}
std::int64_t size_of(const FloatList& list) {
  return list.size;
}

// launch(those, blocks of `chunk` elements, number of the first list, lists) for every kMostParameters.
template <typename T, typename Launch>
void for_many(std::span<const T> all, std::int64_t chunk, const Launch& launch) {
  for (std::size_t first = 0; first < all.size(); first += kMostParameters) {
    const auto some = all.subspan(first, std::min(kMostParameters, all.size() - first));
    Many<T> argument{};
    std::copy(some.begin(), some.end(), argument.one);
    std::fill_n(argument.first, kMostParameters, std::numeric_limits<unsigned>::max());
    unsigned blocks = 0;
    for (std::size_t i = 0; i < some.size(); ++i) {
      argument.first[i] = blocks;
      blocks += static_cast<unsigned>((size_of(some[i]) + chunk - 1) / chunk);
    }
    launch(argument, blocks, first, static_cast<unsigned>(some.size()));
  }
}

}  // namespace

void update_dense(const UpdateNumbers& numbers, std::span<const DenseUpdate> updates, const float* factor,
                  CudaStream stream) {
  for_many(updates, kUpdated,
           [&](const Many<DenseUpdate>& some, unsigned blocks, std::size_t /*first*/, unsigned /*lists*/) {
             if (blocks > 0)
               launch("updating dense parameters", update, blocks, kThreads, stream.handle, numbers, some,
                      factor);
           });
}

void sums_of_squares(std::span<const FloatList> lists, double* sums, CudaStream stream) {
  for_many(
      lists, kChunk, [&](const Many<FloatList>& some, unsigned blocks, std::size_t first, unsigned count) {
        constexpr const char* kWhat = "summing squares of gradients";
        const auto has_one_chunk = [](const FloatList& list) { return 0 < list.size && list.size <= kChunk; };
        if (std::all_of(some.one, some.one + count, has_one_chunk)) {
          launch(kWhat, squares_of_chunks, blocks, kSumThreads, stream.handle, some, sums + first);
          return;
        }
        const Buffer partials = stream.memory->allocate(blocks * std::int64_t{sizeof(double)});
        auto* const partial = reinterpret_cast<double*>(partials.data());
        if (blocks > 0) launch(kWhat, squares_of_chunks, blocks, kSumThreads, stream.handle, some, partial);
        launch(kWhat, sum_chunks, count, kSumThreads, stream.handle, some, partial, sums + first);
      });
}

void judge_update(const UpdateJudgement& judgement, CudaStream stream) {
  launch("judging an update", judge, 1, kThreads, stream.handle, judgement);
}

}  // namespace hstu::cuda
