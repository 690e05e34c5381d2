#include <algorithm>

#include "hstu/device/cuda/check.h"
#include "hstu/device/cuda_calls.h"
#include "hstu/device/memory_pool.h"
#include "hstu/optimizer/dense_update.h"

namespace hstu::cuda {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kChunk = 1 << 14;      // elements of a block that sums
constexpr std::int64_t kUpdated = 1 << 10;    // and of one that updates: few, as a thread waits for each
constexpr std::size_t kMostParameters = 128;  // of one launch: they travel as its argument

template <typename T>
struct Many {
  T one[kMostParameters];
};

__global__ void update(const __grid_constant__ Many<DenseUpdate> all) {
  const DenseUpdate& u = all.one[blockIdx.y];
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x) * kUpdated;
  update_elements(u, begin + threadIdx.x, begin + kUpdated < u.end ? begin + kUpdated : u.end, kThreads);
}

// In double and in a fixed order: `size` terms by one block.
template <typename Term>
__device__ double sum(std::int64_t size, const Term& term) {
  __shared__ double sums[kThreads];
  double mine = 0;
  for (std::int64_t i = threadIdx.x; i < size; i += kThreads) mine += term(i);
  sums[threadIdx.x] = mine;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  return sums[0];
}

// partial (lists, chunks).
__global__ void squares_of_chunks(const __grid_constant__ Many<FloatList> lists, double* partial) {
  const FloatList& list = lists.one[blockIdx.y];
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x) * kChunk;
  if (begin >= list.size) return;
  const double result = sum(begin + kChunk < list.size ? kChunk : list.size - begin, [&](std::int64_t i) {
    const double x = list.values[begin + i];
    return x * x;
  });
  if (threadIdx.x == 0) partial[blockIdx.y * static_cast<std::int64_t>(gridDim.x) + blockIdx.x] = result;
}

__global__ void sum_chunks(const __grid_constant__ Many<FloatList> lists, const double* partial,
                           std::int64_t chunks, double* result) {
  const std::int64_t mine = (lists.one[blockIdx.x].size + kChunk - 1) / kChunk;
  const double total = sum(mine, [&](std::int64_t i) { return partial[blockIdx.x * chunks + i]; });
  if (threadIdx.x == 0) result[blockIdx.x] = total;
}

std::int64_t size_of(const DenseUpdate& u) {
  return u.end;
}
std::int64_t size_of(const FloatList& list) {
  return list.size;
}

// launch(those, chunks of `chunk` elements of the largest, number of the first) for every kMostParameters.
template <typename T, typename Launch>
void for_many(std::span<const T> all, std::int64_t chunk, const Launch& launch) {
  for (std::size_t first = 0; first < all.size(); first += kMostParameters) {
    const auto some = all.subspan(first, std::min(kMostParameters, all.size() - first));
    Many<T> argument{};
    std::copy(some.begin(), some.end(), argument.one);
    std::int64_t largest = 0;
    for (const T& one : some) largest = std::max(largest, size_of(one));
    launch(argument,
           dim3(static_cast<unsigned>(std::max<std::int64_t>(1, (largest + chunk - 1) / chunk)),
                static_cast<unsigned>(some.size())),
           first);
  }
}

}  // namespace

void update_dense(std::span<const DenseUpdate> updates, CudaStream stream) {
  for_many(updates, kUpdated, [&](const Many<DenseUpdate>& some, dim3 blocks, std::size_t) {
    update<<<blocks, kThreads, 0, stream.handle>>>(some);
  });
  check_cuda(cudaGetLastError(), "updating dense parameters");
}

void sums_of_squares(std::span<const FloatList> lists, double* sums, CudaStream stream) {
  for_many(lists, kChunk, [&](const Many<FloatList>& some, dim3 blocks, std::size_t first) {
    const Buffer partials =
        stream.memory->allocate(std::int64_t{blocks.x} * blocks.y * std::int64_t{sizeof(double)});
    auto* const partial = reinterpret_cast<double*>(partials.data());
    squares_of_chunks<<<blocks, kThreads, 0, stream.handle>>>(some, partial);
    sum_chunks<<<blocks.y, kThreads, 0, stream.handle>>>(some, partial, blocks.x, sums + first);
  });
  check_cuda(cudaGetLastError(), "summing squares of gradients");
}

}  // namespace hstu::cuda
