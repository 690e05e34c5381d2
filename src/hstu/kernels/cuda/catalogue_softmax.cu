// The softmax over a catalogue on GPUs: products of a chunk of positions and a block of items, whose logits
// stay in the GPU's second cache until the next launch has read them. All sums have an order of their own, so
// results do not depend on when blocks run.
#include <algorithm>

#include "hstu/base/error.h"
#include "hstu/kernels/catalogue_softmax.h"
#include "hstu/kernels/cuda/gemm.cuh"
#include "hstu/kernels/cuda/loss_sum.cuh"
#include "hstu/kernels/cuda/numbers.cuh"
#include "hstu/kernels/row_weight.h"
#include "hstu/kernels/scratch_sizes.h"

namespace hstu::kernels {
namespace {

using namespace cuda;

struct Larger {
  static constexpr float kNeutral = -INFINITY;
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};
struct Total {
  static constexpr float kNeutral = 0;
  __device__ float operator()(float a, float b) const { return a + b; }
};

// Of all threads of the block, which all get it.
template <typename Combine>
__device__ float of_all_threads(float mine, Combine combine) {
  __shared__ float of_warps[kWarps];
  for (int step = 16; step > 0; step /= 2) mine = combine(mine, __shfl_xor_sync(0xffffffff, mine, step));
  __syncthreads();  // the call before has been read
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = mine;
  __syncthreads();
  float all = Combine::kNeutral;
  for (int w = 0; w < kWarps; ++w) all = combine(all, of_warps[w]);
  return all;
}

__global__ void find(FindIds p) {
  hstu::cuda::wait_for_previous_launch();
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= p.wanted_count) return;
  std::int64_t low = 0, high = p.size;
  while (low < high) {
    const std::int64_t middle = (low + high) / 2;
    if (p.ids[middle] < p.wanted[i])
      low = middle + 1;
    else
      high = middle;
  }
  p.numbers[i] = low < p.size && p.ids[low] == p.wanted[i] ? low : -1;
}

__global__ void start(StartSoftmax<float> p) {
  hstu::cuda::wait_for_previous_launch();
  const std::int64_t r = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (r >= p.positions) return;
  p.largest[r] = -INFINITY;
  p.parts[r] = {0, 0, 0};
}

// What positions and the logits (positions, n) of a block have to do with each other; pointers begin at the
// first position of the chunk.
struct Chunk {
  std::int64_t items, first;
  const float* logits;
  const float* bias;  // (n) or null
  const std::int64_t* targets;
  const float* weights = nullptr;  // or null

  // The logit of position r and item i; own: the number of the position's item.
  __device__ float logit(std::int64_t r, std::int64_t i, std::int64_t own) const {
    const float z = logits[r * items + i];
    return bias == nullptr || i == own ? z : z + bias[i];
  }
};

// A block takes the logits of one position.
__global__ void take_logits(Chunk chunk, float* largest, SoftmaxPart<float>* parts) {
  hstu::cuda::wait_for_previous_launch();
  const std::int64_t r = blockIdx.x, own = chunk.targets[r] - chunk.first;
  float most = Larger::kNeutral;
  for (std::int64_t i = threadIdx.x; i < chunk.items; i += kThreads)
    most = fmaxf(most, chunk.logit(r, i, own));
  const float before = largest[r];
  most = of_all_threads(fmaxf(most, before), Larger());
  float sum = 0;
  for (std::int64_t i = threadIdx.x; i < chunk.items; i += kThreads)
    sum += __expf(chunk.logit(r, i, own) - most);
  sum = of_all_threads(sum, Total());
  if (threadIdx.x != 0) return;
  SoftmaxPart<float>& part = parts[r];
  part.sum = part.sum * (before == most ? 1.0f : expf(before - most)) + sum;
  if (own >= 0 && own < chunk.items) {
    part.positive = chunk.logit(r, own, own);
    part.found = 1;
  }
  largest[r] = most;
}

// G of one position.
template <typename N>
__global__ void to_gradient(Chunk chunk, const float* log_sum, const float* dloss, double factor, float scale,
                            N* g) {
  hstu::cuda::wait_for_previous_launch();
  const std::int64_t r = blockIdx.x, own = chunk.targets[r] - chunk.first;
  const float times = static_cast<float>(*dloss * factor * weight_of(chunk.weights, r)) * scale,
              shift = log_sum[r];
  for (std::int64_t i = threadIdx.x; i < chunk.items; i += kThreads)
    g[r * chunk.items + i] =
        from_float<N>(times * (__expf(chunk.logit(r, i, own) - shift) - (i == own ? 1.0f : 0.0f)));
}

__global__ void rescale(SoftmaxRescale<float> p) {
  hstu::cuda::wait_for_previous_launch();
  const std::int64_t r = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (r >= p.positions) return;
  float most = p.largest_of_ranks[r];
  for (std::int64_t k = 1; k < p.ranks; ++k) most = fmaxf(most, p.largest_of_ranks[k * p.positions + r]);
  p.largest[r] = most;
  if (p.parts[r].sum != 0) p.parts[r].sum *= expf(p.largest_of_ranks[p.rank * p.positions + r] - most);
}

struct PositionLoss {
  const float* largest;
  const SoftmaxPart<float>* parts;
  const float* weights;  // (R) or null
  float* log_sum;

  __device__ double operator()(std::int64_t r) const {
    const double total = static_cast<double>(largest[r]) + log(static_cast<double>(parts[r].sum));
    log_sum[r] = static_cast<float>(total);
    return parts[r].found == 1 ? weight_of(weights, r) * (total - static_cast<double>(parts[r].positive))
                               : static_cast<double>(NAN);
  }
};

// Calls body(begin, count) for chunks of positions.
template <typename Body>
void for_chunks(std::int64_t positions, const Body& body) {
  for (std::int64_t begin = 0; begin < positions; begin += kSoftmaxChunk)
    body(begin, std::min(kSoftmaxChunk, positions - begin));
}

template <typename T>
void multiply_one(const Gemm<T, float>& gemm, CudaStream stream) {
  const Product<T, float> product{.gemm = gemm};
  multiply(std::span<const Product<T, float>>(&product, 1), stream);
}

template <typename T>
Chunk put_logits(const CatalogueBlock<T>& block, std::int64_t begin, std::int64_t count, float* logits,
                 CudaStream stream) {
  multiply_one(Gemm<T, float>{.m = count,
                              .n = block.items,
                              .k = block.width,
                              .alpha = block.scale,
                              .a = {block.vectors + begin * block.width, block.width, Op::none},
                              .b = {block.rows, block.width, Op::transpose},
                              .c = logits,
                              .stride_c = block.items},
               stream);
  return {block.items, block.first, logits, block.bias, block.targets + begin};
}

}  // namespace

void find_ids(const FindIds& p, CudaStream stream) {
  if (p.wanted_count == 0) return;
  hstu::cuda::launch("find ids", find, blocks_for(p.wanted_count, kThreads), kThreads, stream.handle, p);
}

void start_softmax(const StartSoftmax<float>& p, CudaStream stream) {
  if (p.positions == 0) return;
  hstu::cuda::launch("catalogue softmax, start", start, blocks_for(p.positions, kThreads), kThreads,
                     stream.handle, p);
}

template <typename T>
void add_softmax_block(const SoftmaxSums<T>& p, CudaStream stream) {
  const CatalogueBlock<T>& block = p.block;
  const Scratch<float> logits(stream, softmax_logits(block.positions, block.items));
  for_chunks(block.positions, [&](std::int64_t begin, std::int64_t count) {
    const Chunk chunk = put_logits(block, begin, count, logits.data(), stream);
    hstu::cuda::launch("catalogue softmax", take_logits, static_cast<unsigned>(count), kThreads,
                       stream.handle, chunk, p.largest + begin, p.parts + begin);
  });
}

template <typename T>
void softmax_block_gradients(const SoftmaxGradients<T>& p, CudaStream stream) {
  const CatalogueBlock<T>& block = p.block;
  const std::int64_t width = block.width, n = block.items;
  const Scratch<float> logits(stream, softmax_logits(block.positions, n));
  const Scratch<T> g(stream, softmax_logits(block.positions, n));
  for_chunks(block.positions, [&](std::int64_t begin, std::int64_t count) {
    Chunk chunk = put_logits(block, begin, count, logits.data(), stream);
    if (p.weights != nullptr) chunk.weights = p.weights + begin;
    hstu::cuda::launch("catalogue softmax, backward", to_gradient<Native<T>>, static_cast<unsigned>(count),
                       kThreads, stream.handle, chunk, p.log_sum + begin, p.dloss, p.factor, block.scale,
                       native(g.data()));
    if (p.dvectors != nullptr)
      multiply_one(Gemm<T, float>{.m = count,
                                  .n = width,
                                  .k = n,
                                  .a = {g.data(), n, Op::none},
                                  .b = {block.rows, width, Op::none},
                                  .beta = 1,
                                  .c = p.dvectors + begin * width,
                                  .stride_c = width},
                   stream);
    if (p.drows != nullptr)
      multiply_one(Gemm<T, float>{.m = n,
                                  .n = width,
                                  .k = count,
                                  .a = {g.data(), n, Op::transpose},
                                  .b = {block.vectors + begin * width, width, Op::none},
                                  .beta = begin == 0 ? 0.0f : 1.0f,
                                  .c = p.drows,
                                  .stride_c = width},
                   stream);
  });
}

void rescale_softmax(const SoftmaxRescale<float>& p, CudaStream stream) {
  if (p.positions == 0) return;
  hstu::cuda::launch("catalogue softmax, ranks", rescale, blocks_for(p.positions, kThreads), kThreads,
                     stream.handle, p);
}

void softmax_loss(const SoftmaxLoss<float>& p, CudaStream stream) {
  sum_losses(p.positions, p.factor, PositionLoss{p.largest, p.parts, p.weights, p.log_sum}, p.loss, stream);
}

template void add_softmax_block(const SoftmaxSums<float>&, CudaStream);
template void add_softmax_block(const SoftmaxSums<BFloat16>&, CudaStream);
template void softmax_block_gradients(const SoftmaxGradients<float>&, CudaStream);
template void softmax_block_gradients(const SoftmaxGradients<BFloat16>&, CudaStream);

}  // namespace hstu::kernels
