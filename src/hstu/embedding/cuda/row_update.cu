#include <cmath>

#include "hstu/embedding/cuda/row_kernels.cuh"

namespace hstu::cuda {
namespace {

__device__ float sum_of_warp(float x) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
  return x;
}

// The numbers of one update, as row_optimizer.cc computes them.
struct Numbers {
  RowOptimizerKind kind;
  double lr, epsilon, beta1, beta2, weight_decay;
};

// Four columns of this lane, from c on; those beyond `dim` are 0. Rows and states are aligned to 16 bytes
// where dim is a multiple of 4.
struct Quad {
  float x[4];
};
__device__ Quad load_quad(const float* from, std::int64_t c, std::int64_t dim) {
  if (dim % 4 == 0) {
    const float4 v = *reinterpret_cast<const float4*>(from + c);
    return {v.x, v.y, v.z, v.w};
  }
  Quad quad;
#pragma unroll
  for (int i = 0; i < 4; ++i) quad.x[i] = c + i < dim ? from[c + i] : 0.0f;
  return quad;
}
__device__ void store_quad(float* to, std::int64_t c, std::int64_t dim, const Quad& quad) {
  if (dim % 4 == 0) {
    *reinterpret_cast<float4*>(to + c) = {quad.x[0], quad.x[1], quad.x[2], quad.x[3]};
    return;
  }
#pragma unroll
  for (int i = 0; i < 4; ++i)
    if (c + i < dim) to[c + i] = quad.x[i];
}

__device__ void descend(std::int64_t dim, float rate, const float* gradient, float* row) {
  for (std::int64_t c = 4 * lane(); c < dim; c += 128) {
    const Quad g = load_quad(gradient, c, dim);
    Quad w = load_quad(row, c, dim);
#pragma unroll
    for (int i = 0; i < 4; ++i) w.x[i] -= rate * g.x[i];
    store_quad(row, c, dim, w);
  }
}

__device__ void update_adagrad(const Numbers& u, std::int64_t dim, const float* gradient, float* row,
                               float* state) {
  float squares = 0;
  for (std::int64_t c = 4 * lane(); c < dim; c += 128) {
    const Quad g = load_quad(gradient, c, dim);
#pragma unroll
    for (int i = 0; i < 4; ++i) squares += g.x[i] * g.x[i];
  }
  const float sum = state[0] + sum_of_warp(squares) / static_cast<float>(dim);
  __syncwarp();
  if (lane() == 0) state[0] = sum;
  descend(dim, static_cast<float>(u.lr / (sqrt(static_cast<double>(sum)) + u.epsilon)), gradient, row);
}

__device__ void update_elementwise_adagrad(const Numbers& u, std::int64_t dim, const float* gradient,
                                           float* row, float* state) {
  const auto rate = static_cast<float>(u.lr), epsilon = static_cast<float>(u.epsilon);
  for (std::int64_t c = 4 * lane(); c < dim; c += 128) {
    const Quad g = load_quad(gradient, c, dim);
    Quad sums = load_quad(state, c, dim), w = load_quad(row, c, dim);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      sums.x[i] += g.x[i] * g.x[i];
      w.x[i] -= rate * g.x[i] / (sqrtf(sums.x[i]) + epsilon);
    }
    store_quad(state, c, dim, sums);
    store_quad(row, c, dim, w);
  }
}

__device__ void update_adam(const Numbers& u, std::int64_t dim, const float* gradient, float* row,
                            float* state) {
  float* const m = state;
  float* const v = state + dim;
  const float updates = state[2 * dim] + 1.0f;
  __syncwarp();
  if (lane() == 0) state[2 * dim] = updates;
  const double t = updates;
  const auto beta1 = static_cast<float>(u.beta1), rest1 = static_cast<float>(1.0 - u.beta1);
  const auto beta2 = static_cast<float>(u.beta2), rest2 = static_cast<float>(1.0 - u.beta2);
  const auto rate = static_cast<float>(u.lr / (1.0 - pow(u.beta1, t)));
  const auto root = static_cast<float>(1.0 / sqrt(1.0 - pow(u.beta2, t)));
  const auto epsilon = static_cast<float>(u.epsilon);
  const auto kept = static_cast<float>(u.kind == RowOptimizerKind::adamw ? 1.0 - u.lr * u.weight_decay : 1.0);
  for (std::int64_t c = 4 * lane(); c < dim; c += 128) {
    const Quad g = load_quad(gradient, c, dim);
    Quad ms = load_quad(m, c, dim), vs = load_quad(v, c, dim), w = load_quad(row, c, dim);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      ms.x[i] = beta1 * ms.x[i] + rest1 * g.x[i];
      vs.x[i] = beta2 * vs.x[i] + rest2 * g.x[i] * g.x[i];
      w.x[i] = kept * w.x[i] - rate * ms.x[i] / (sqrtf(vs.x[i]) * root + epsilon);
    }
    store_quad(m, c, dim, ms);
    store_quad(v, c, dim, vs);
    store_quad(row, c, dim, w);
  }
}

__global__ void update(const __grid_constant__ Lists lists, const Numbers u) {
  const RowList& list = lists.list[blockIdx.y];
  std::int64_t i;
  if (!row_of_warp(list, i)) return;
  const std::int64_t slot = list.slots[i], dim = list.table.dim;
  if (slot < 0) return;
  RowHeader* const record = record_of(list.table, slot);
  if (lane() == 0 && atomicExch(&record->stamp, list.number) == list.number) list.table.report->twice = 1;
  float* const row = values_of(record);
  const float* const gradient = list.values + i * dim;
  if (u.kind == RowOptimizerKind::rowwise_adagrad)
    update_adagrad(u, dim, gradient, row, row + dim);
  else if (u.kind == RowOptimizerKind::adagrad)
    update_elementwise_adagrad(u, dim, gradient, row, row + dim);
  else if (u.kind == RowOptimizerKind::adam || u.kind == RowOptimizerKind::adamw)
    update_adam(u, dim, gradient, row, row + dim);
  else
    descend(dim, static_cast<float>(u.lr), gradient, row);
}

}  // namespace

void update_rows(std::span<const RowList> lists, const RowOptimizer& optimizer, double learning_rate,
                 cudaStream_t stream) {
  const Numbers numbers{optimizer.kind,  learning_rate,   optimizer.epsilon,
                        optimizer.beta1, optimizer.beta2, optimizer.weight_decay};
  for_lists(lists, kWarps, [&](dim3 blocks, const Lists& some, std::size_t) {
    update<<<blocks, kThreads, 0, stream>>>(some, numbers);
  });
}

}  // namespace hstu::cuda
