#include <type_traits>

#include "hstu/rows/cuda/row_kernels.cuh"
#include "hstu/rows/cuda/row_values.cuh"
#include "hstu/rows/row_update.h"

namespace hstu::cuda {
namespace {

__device__ float sum_of_warp(float x) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(kAllLanes, x, step);
  return x;
}

// A warp updates a row: sgd, and rowwise_adagrad with the rate of its row.
template <typename Values>
__device__ void descend(std::int64_t dim, float rate, const float* gradient, const Values& row) {
  for (std::int64_t c = 4 * lane(); c < dim; c += 128) {
    const Quad g = load_quad(gradient, c, dim);
    Quad w = row.load(c);
#pragma unroll
    for (int i = 0; i < 4; ++i) hstu::descend(rate, g.x[i], w.x[i]);
    row.store(c, w);
  }
}

template <typename Values>
__device__ void update_rowwise_adagrad(const RowUpdateNumbers& u, std::int64_t dim, const float* gradient,
                                       const Values& row, float* state) {
  const float before = state[0];
  float squares = 0;
  for (std::int64_t c = 4 * lane(); c < dim; c += 128) {
    const Quad g = load_quad(gradient, c, dim);
#pragma unroll
    for (int i = 0; i < 4; ++i) squares += g.x[i] * g.x[i];
  }
  const float sum = before + sum_of_warp(squares) / static_cast<float>(dim);
  descend(dim, rowwise_adagrad_rate(u, sum), gradient, row);
  if (lane() == 0) state[0] = sum;
}

template <typename Values>
__device__ void update_adagrad(const RowUpdateNumbers& u, std::int64_t dim, const float* gradient,
                               const Values& row, float* state) {
  for (std::int64_t c = 4 * lane(); c < dim; c += 128) {
    const Quad g = load_quad(gradient, c, dim);
    Quad sums = load_quad(state, c, dim), w = row.load(c);
#pragma unroll
    for (int i = 0; i < 4; ++i) hstu::update_adagrad(u, g.x[i], sums.x[i], w.x[i]);
    store_quad(state, c, dim, sums);
    row.store(c, w);
  }
}

// The number of updates and the first columns are read at the same time: a warp lives for one row, most of
// that time waiting for memory.
template <bool kDecays, typename Values>
__device__ void update_adam(const RowUpdateNumbers& u, std::int64_t dim, const float* gradient,
                            const Values& row, float* state) {
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
  const AdamRates rates = adam_rates(u, updates);
  for (; c < dim; load(c)) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if constexpr (kDecays) decay(u, w.x[i]);
      hstu::update_adam(u, rates, g.x[i], ms.x[i], vs.x[i], w.x[i]);
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
__device__ void update_row(const RowUpdateNumbers& u, std::int64_t dim, const float* gradient,
                           const Values& row, float* state) {
  using enum RowOptimizerKind;
  if constexpr (kKind == rowwise_adagrad) {
    update_rowwise_adagrad(u, dim, gradient, row, state);
  } else if constexpr (kKind == sgd) {
    descend(dim, u.rate, gradient, row);
  } else if constexpr (kKind == adagrad) {
    update_adagrad(u, dim, gradient, row, state);
  } else {
    static_assert(kKind == adam || kKind == adamw);
    update_adam<kKind == adamw>(u, dim, gradient, row, state);
  }
}

template <RowOptimizerKind kKind, bool kBf16, typename Lists>
__global__ void update(const __grid_constant__ Lists lists, const RowUpdateNumbers u, const float* factor) {
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
  if (u.is_frozen) {  // the stamp alone: the step has the row
  } else if constexpr (kBf16) {
    const std::int64_t id = list.ids != nullptr ? list.ids[i] : record->id;
    const Bf16Values values{
        reinterpret_cast<std::uint16_t*>(row), t.dim, t.first_column, id, t.step, t.rounding_key};
    update_row<kKind>(u, t.dim, gradient, values, state);
  } else {
    update_row<kKind>(u, t.dim, gradient, F32Values{row, t.dim}, state);
  }
  if (stamp == list.number) t.report->twice = 1;  // last, because nothing waits for the stamp then
}

}  // namespace

void update_rows(std::span<const RowList> lists, const RowOptimizer& optimizer, double learning_rate,
                 const float* factor, cudaStream_t stream) {
  const RowUpdateNumbers numbers(optimizer, learning_rate);
  const bool is_bf16 = !lists.empty() && lists.front().table.is_bf16;
  for_lists(lists, kWarps, [&]<typename Lists>(dim3 blocks, const Lists& some, std::size_t) {
    for_kind(optimizer.kind, [&]<RowOptimizerKind kKind>(std::integral_constant<RowOptimizerKind, kKind>) {
      auto* const kernel = is_bf16 ? &update<kKind, true, Lists> : &update<kKind, false, Lists>;
      launch("updating rows", kernel, blocks, kThreads, stream, some, numbers, factor);
    });
  });
}

}  // namespace hstu::cuda
