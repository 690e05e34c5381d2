#include <cmath>

#include "hstu/rows/cuda/row_kernels.cuh"
#include "hstu/rows/cuda/row_values.cuh"

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

template <typename Values>
__device__ void descend(std::int64_t dim, float rate, const float* gradient, const Values& row) {
  for (std::int64_t c = 4 * lane(); c < dim; c += 128) {
    const Quad g = load_quad(gradient, c, dim);
    Quad w = row.load(c);
#pragma unroll
    for (int i = 0; i < 4; ++i) w.x[i] -= rate * g.x[i];
    row.store(c, w);
  }
}

template <typename Values>
__device__ void update_adagrad(const Numbers& u, std::int64_t dim, const float* gradient, const Values& row,
                               float* state) {
  const float before = state[0];
  float squares = 0;
  for (std::int64_t c = 4 * lane(); c < dim; c += 128) {
    const Quad g = load_quad(gradient, c, dim);
#pragma unroll
    for (int i = 0; i < 4; ++i) squares += g.x[i] * g.x[i];
  }
  const float sum = before + sum_of_warp(squares) / static_cast<float>(dim);
  // As the host computes it, to the bit.
  const double rate = u.exact_rate / (sqrt(static_cast<double>(sum)) + u.exact_epsilon);
  descend(dim, static_cast<float>(rate), gradient, row);
  if (lane() == 0) state[0] = sum;
}

template <typename Values>
__device__ void update_elementwise_adagrad(const Numbers& u, std::int64_t dim, const float* gradient,
                                           const Values& row, float* state) {
  for (std::int64_t c = 4 * lane(); c < dim; c += 128) {
    const Quad g = load_quad(gradient, c, dim);
    Quad sums = load_quad(state, c, dim), w = row.load(c);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      sums.x[i] += g.x[i] * g.x[i];
      w.x[i] -= u.rate * g.x[i] / (sqrtf(sums.x[i]) + u.epsilon);
    }
    store_quad(state, c, dim, sums);
    row.store(c, w);
  }
}

// The number of updates and the first columns are read at the same time: a warp lives for one row, most of
// that time waiting for memory.
template <typename Values>
__device__ void update_adam(const Numbers& u, std::int64_t dim, const float* gradient, const Values& row,
                            float* state) {
  float* const m = state;
  float* const v = state + dim;
  Quad g, ms, vs, w;
  const auto load = [&](std::int64_t c) {
    if (c >= dim) return;
    g = load_quad(gradient, c, dim);
    ms = load_quad(m, c, dim), vs = load_quad(v, c, dim), w = row.load(c);
  };
  std::int64_t c = 4 * lane();
  load(c);
  const float updates = state[2 * dim] + 1.0f;
  // 1 - beta^t without the cancellation of small t.
  const float rate = u.rate / -expm1f(updates * u.log1);
  const float root = rsqrtf(-expm1f(updates * u.log2));
  for (; c < dim; load(c)) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      ms.x[i] = u.beta1 * ms.x[i] + u.rest1 * g.x[i];
      vs.x[i] = u.beta2 * vs.x[i] + u.rest2 * g.x[i] * g.x[i];
      w.x[i] = u.kept * w.x[i] - rate * ms.x[i] / (sqrtf(vs.x[i]) * root + u.epsilon);
    }
    store_quad(m, c, dim, ms);
    store_quad(v, c, dim, vs);
    row.store(c, w);
    c += 128;
  }
  __syncwarp();  // all lanes have read it
  if (lane() == 0) state[2 * dim] = updates;
}

template <RowOptimizerKind kKind, typename Values>
__device__ void update_row(const Numbers& u, std::int64_t dim, const float* gradient, const Values& row,
                           float* state) {
  if constexpr (kKind == RowOptimizerKind::rowwise_adagrad)
    update_adagrad(u, dim, gradient, row, state);
  else if constexpr (kKind == RowOptimizerKind::adagrad)
    update_elementwise_adagrad(u, dim, gradient, row, state);
  else if constexpr (kKind == RowOptimizerKind::adam)
    update_adam(u, dim, gradient, row, state);
  else
    descend(dim, u.rate, gradient, row);
}

template <RowOptimizerKind kKind, bool kBf16, typename Lists>
__global__ void update(const __grid_constant__ Lists lists, const Numbers u, const float* factor) {
  wait_for_previous_launch();
  if (factor != nullptr && isnan(*factor)) return;
  const RowList& list = lists.list[blockIdx.y];
  std::int64_t i;
  if (!row_of_warp(list, i)) return;
  const RowTable& t = list.table;
  const std::int64_t slot = list.slots[i];
  if (slot < 0) return;
  RowHeader* const record = record_of(t, slot);
  std::uint32_t stamp = list.number - 1;
  if (lane() == 0) stamp = atomicExch(&record->stamp, list.number);
  float* const row = values_of(record);
  float* const state = row + t.state_begin;
  const float* const gradient = list.values + i * t.dim;
  if constexpr (kBf16) {
    const std::int64_t id = list.ids != nullptr ? list.ids[i] : record->id;
    const Bf16Values values{
        reinterpret_cast<std::uint16_t*>(row), t.dim, t.first_column, id, t.step, t.rounding_key};
    update_row<kKind>(u, t.dim, gradient, values, state);
  } else {
    update_row<kKind>(u, t.dim, gradient, F32Values{row, t.dim}, state);
  }
  if (stamp == list.number) t.report->twice = 1;  // last, because nothing waits for the stamp then
}

// AdamW is Adam with another `kept`.
template <bool kBf16, typename Lists>
auto* kernel_of(RowOptimizerKind kind) {
  switch (kind) {
    case RowOptimizerKind::rowwise_adagrad:
      return &update<RowOptimizerKind::rowwise_adagrad, kBf16, Lists>;
    case RowOptimizerKind::adagrad:
      return &update<RowOptimizerKind::adagrad, kBf16, Lists>;
    case RowOptimizerKind::adam:
    case RowOptimizerKind::adamw:
      return &update<RowOptimizerKind::adam, kBf16, Lists>;
    default:
      return &update<RowOptimizerKind::sgd, kBf16, Lists>;
  }
}

}  // namespace

void update_rows(std::span<const RowList> lists, const RowOptimizer& optimizer, double learning_rate,
                 const float* factor, cudaStream_t stream) {
  const Numbers numbers(optimizer, learning_rate);
  const bool is_bf16 = !lists.empty() && lists.front().table.is_bf16;
  for_lists(lists, kWarps, [&]<typename Lists>(dim3 blocks, const Lists& some, std::size_t) {
    auto* const update =
        is_bf16 ? kernel_of<true, Lists>(optimizer.kind) : kernel_of<false, Lists>(optimizer.kind);
    launch("updating rows", update, blocks, kThreads, stream, some, numbers, factor);
  });
}

}  // namespace hstu::cuda
