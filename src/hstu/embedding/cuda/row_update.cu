#include <cmath>

#include "hstu/embedding/cuda/row_kernels.cuh"

namespace hstu::cuda {
namespace {

__device__ float sum_of_warp(float x) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(kAllLanes, x, step);
  return x;
}

// The numbers of one update.
struct Numbers {
  float rate, epsilon;
  float beta1, rest1, log1, beta2, rest2, log2;  // beta, 1 - beta, log(beta)
  float kept;                                    // 1 - rate * weight decay
  double exact_rate, exact_epsilon;

  Numbers(const RowOptimizer& o, double learning_rate)
      : rate(static_cast<float>(learning_rate)),
        epsilon(static_cast<float>(o.epsilon)),
        beta1(static_cast<float>(o.beta1)),
        rest1(static_cast<float>(1.0 - o.beta1)),
        log1(static_cast<float>(std::log(o.beta1))),
        beta2(static_cast<float>(o.beta2)),
        rest2(static_cast<float>(1.0 - o.beta2)),
        log2(static_cast<float>(std::log(o.beta2))),
        kept(static_cast<float>(o.kind == RowOptimizerKind::adamw ? 1.0 - learning_rate * o.weight_decay
                                                                  : 1.0)),
        exact_rate(learning_rate),
        exact_epsilon(o.epsilon) {}
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
  // As the host computes it, to the bit.
  const double rate = u.exact_rate / (sqrt(static_cast<double>(sum)) + u.exact_epsilon);
  descend(dim, static_cast<float>(rate), gradient, row);
}

__device__ void update_elementwise_adagrad(const Numbers& u, std::int64_t dim, const float* gradient,
                                           float* row, float* state) {
  for (std::int64_t c = 4 * lane(); c < dim; c += 128) {
    const Quad g = load_quad(gradient, c, dim);
    Quad sums = load_quad(state, c, dim), w = load_quad(row, c, dim);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      sums.x[i] += g.x[i] * g.x[i];
      w.x[i] -= u.rate * g.x[i] / (sqrtf(sums.x[i]) + u.epsilon);
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
  // 1 - beta^t without the cancellation of small t.
  const float rate = u.rate / -expm1f(updates * u.log1);
  const float root = rsqrtf(-expm1f(updates * u.log2));
  for (std::int64_t c = 4 * lane(); c < dim; c += 128) {
    const Quad g = load_quad(gradient, c, dim);
    Quad ms = load_quad(m, c, dim), vs = load_quad(v, c, dim), w = load_quad(row, c, dim);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      ms.x[i] = u.beta1 * ms.x[i] + u.rest1 * g.x[i];
      vs.x[i] = u.beta2 * vs.x[i] + u.rest2 * g.x[i] * g.x[i];
      w.x[i] = u.kept * w.x[i] - rate * ms.x[i] / (sqrtf(vs.x[i]) * root + u.epsilon);
    }
    store_quad(m, c, dim, ms);
    store_quad(v, c, dim, vs);
    store_quad(row, c, dim, w);
  }
}

template <RowOptimizerKind kKind>
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
  if constexpr (kKind == RowOptimizerKind::rowwise_adagrad)
    update_adagrad(u, dim, gradient, row, row + dim);
  else if constexpr (kKind == RowOptimizerKind::adagrad)
    update_elementwise_adagrad(u, dim, gradient, row, row + dim);
  else if constexpr (kKind == RowOptimizerKind::adam)
    update_adam(u, dim, gradient, row, row + dim);
  else
    descend(dim, u.rate, gradient, row);
}

// AdamW is Adam with another `kept`.
auto* kernel_of(RowOptimizerKind kind) {
  switch (kind) {
    case RowOptimizerKind::rowwise_adagrad:
      return &update<RowOptimizerKind::rowwise_adagrad>;
    case RowOptimizerKind::adagrad:
      return &update<RowOptimizerKind::adagrad>;
    case RowOptimizerKind::adam:
    case RowOptimizerKind::adamw:
      return &update<RowOptimizerKind::adam>;
    default:
      return &update<RowOptimizerKind::sgd>;
  }
}

}  // namespace

void update_rows(std::span<const RowList> lists, const RowOptimizer& optimizer, double learning_rate,
                 cudaStream_t stream) {
  const Numbers numbers(optimizer, learning_rate);
  auto* const update = kernel_of(optimizer.kind);
  for_lists(lists, kWarps, [&](dim3 blocks, const Lists& some, std::size_t) {
    update<<<blocks, kThreads, 0, stream>>>(some, numbers);
  });
}

}  // namespace hstu::cuda
