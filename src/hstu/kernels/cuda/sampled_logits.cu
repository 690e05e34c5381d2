// Logits of positions and the rows that were drawn for each, on GPUs.
#include "hstu/kernels/cuda/rows.cuh"
#include "hstu/kernels/cuda/weighted_sums.h"
#include "hstu/kernels/sampled_loss.h"

namespace hstu::kernels {
namespace {

using namespace cuda;

template <typename N>
struct SampledArguments {
  std::int64_t columns, rows_count, width;
  float scale;
  const N *vectors, *rows;
  const std::int32_t* index;

  __device__ bool is_masked(std::int64_t r, std::int64_t c) const {
    const std::int32_t* const of_position = index + r * columns;
    return of_position[c] < 0 || (c > 0 && of_position[c] == of_position[0]);
  }
};

template <typename T>
SampledArguments<Native<T>> arguments(const SampledLogits<T>& p) {
  return {p.columns, p.rows_count, p.width, p.scale, native(p.vectors), native(p.rows), p.index};
}

// A block has a position, a warp its columns in turn.
template <typename N>
__global__ void products(SampledArguments<N> a, N* logits) {
  hstu::cuda::wait_for_previous_launch();
  const std::int64_t r = blockIdx.x;
  const N* const vector = a.vectors + r * a.width;
  for (std::int64_t c = threadIdx.x / 32; c < a.columns; c += kWarps) {
    const std::int32_t row = a.index[r * a.columns + c];
    if (row >= a.rows_count) __trap();
    float sum = 0;
    const bool masked = a.is_masked(r, c);
    for (std::int64_t e = lane(); e < a.width && !masked; e += 32)
      sum = fmaf(to_float(vector[e]), to_float(a.rows[row * a.width + e]), sum);
    sum = warp_sum(sum);
    if (lane() == 0)
      logits[r * a.columns + c] = from_float<N>(masked ? static_cast<float>(kMaskedLogit) : a.scale * sum);
  }
}

// A block has a position; blockDim.x threads have its elements, and blockDim.y of them every so many columns.
template <typename N>
__global__ void vector_gradients(SampledArguments<N> a, const N* dlogits, Target<N> dvectors) {
  hstu::cuda::wait_for_previous_launch();
  __shared__ float parts[kThreads];
  const std::int64_t r = blockIdx.x;
  const int thread = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
  for (std::int64_t first = 0; first < a.width; first += blockDim.x) {
    const std::int64_t e = first + threadIdx.x;
    float sum = 0;
    for (std::int64_t c = threadIdx.y; c < a.columns && e < a.width; c += blockDim.y) {
      const std::int64_t i = r * a.columns + c;
      if (!a.is_masked(r, c))
        sum = fmaf(to_float(dlogits[i]), to_float(a.rows[a.index[i] * a.width + e]), sum);
    }
    parts[thread] = sum;
    __syncthreads();
    if (threadIdx.y == 0 && e < a.width) {
      for (unsigned y = 1; y < blockDim.y; ++y) sum += parts[y * blockDim.x + threadIdx.x];
      dvectors.put(r * a.width + e, a.scale * sum);
    }
    __syncthreads();
  }
}

// index as the gradients of rows take it: -1 where a column is masked.
template <typename N>
__global__ void unmasked_index(SampledArguments<N> a, std::int64_t count, std::int32_t* index) {
  hstu::cuda::wait_for_previous_launch();
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < count) index[i] = a.is_masked(i / a.columns, i % a.columns) ? -1 : a.index[i];
}

}  // namespace

template <typename T>
void sampled_logits(const SampledLogits<T>& p, CudaStream stream) {
  if (p.positions == 0) return;
  hstu::cuda::launch("sampled logits", products<Native<T>>, blocks_for(p.positions, 1), kThreads,
                     stream.handle, arguments(p), native(p.logits));
}

template <typename T>
void sampled_logits_backward(const SampledLogitsBackward<T>& p, CudaStream stream) {
  const SampledLogits<T>& f = p.forward;
  const std::int64_t pairs = f.positions * f.columns;
  if (p.dvectors.to != nullptr && f.positions > 0) {
    unsigned x = 32;
    while (x < kThreads && x < f.width) x *= 2;
    hstu::cuda::launch("sampled logits, vectors", vector_gradients<Native<T>>, blocks_for(f.positions, 1),
                       dim3(x, kThreads / x), stream.handle, arguments(f), native(p.dlogits),
                       target(p.dvectors));
  }
  if (p.drows.to == nullptr) return;
  const Scratch<std::int32_t> index(stream, pairs);
  if (pairs > 0)
    hstu::cuda::launch("sampled logits, rows", unmasked_index<Native<T>>, blocks_for(pairs, kThreads),
                       kThreads, stream.handle, arguments(f), pairs, index.data());
  add_weighted(WeightedSums<T>{.pairs = pairs,
                               .columns = f.columns,
                               .width = f.width,
                               .x = f.vectors,
                               .weights = p.dlogits,
                               .index = index.data(),
                               .count = f.rows_count,
                               .factor = f.scale,
                               .sums = p.drows},
               stream);
}

template void sampled_logits(const SampledLogits<float>&, CudaStream);
template void sampled_logits(const SampledLogits<BFloat16>&, CudaStream);
template void sampled_logits_backward(const SampledLogitsBackward<float>&, CudaStream);
template void sampled_logits_backward(const SampledLogitsBackward<BFloat16>&, CudaStream);

}  // namespace hstu::kernels
