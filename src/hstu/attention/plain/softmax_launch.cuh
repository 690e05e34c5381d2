// How the kernels of attention with a softmax are launched.
#pragma once

#include "hstu/attention/plain/softmax_tile.cuh"

namespace hstu::cuda {

template <typename T>
Rows<T> softmax_rows(const AttentionRows& rows) {
  return {static_cast<T*>(rows.data), rows.row_stride, rows.head_stride};
}

// `bias`: null where the problem has none.
template <typename T>
SoftmaxArguments<T> softmax_arguments(const AttentionProblem& p, const Bias* bias) {
  return {.samples = samples_of(p),
          .query_offsets = p.offsets_of_queries(),
          .q = rows_of<T>(p.q),
          .k = rows_of<T>(p.k),
          .v = rows_of<T>(p.v),
          .d_o = {},
          .o = {},
          .dq = {},
          .dk = {},
          .dv = {},
          .past = cached_rows<T>(p.past),
          .bias = bias != nullptr ? *bias : Bias(),
          .hidden = {p.mask.hidden_period, p.mask.hidden_phase},
          .silu = p.score == ScoreFunction::silu,
          .alpha = static_cast<float>(p.alpha),
          .head_dim = static_cast<std::int32_t>(p.head_dim),
          .accumulate_dq = 0,
          .accumulate_dkv = 0,
          .drops = p.dropout.rate > 0,
          .dropout_key = p.dropout.key,
          .dropout = kernels::cuda::DropoutRows(p.dropout),
          .rows = nullptr};
}

// The blocks of plain_place.
inline dim3 softmax_blocks(const AttentionProblem& p, std::int64_t rows) {
  return {static_cast<unsigned>(rows / kSoftmaxOwn + p.samples), static_cast<unsigned>(p.heads)};
}

// Calls body.template operator()<T, head size>().
template <typename Body>
void with_softmax_form(const AttentionProblem& p, const Body& body) {
  const auto with_size = [&]<typename T>() {
    if (p.head_dim <= 64)
      body.template operator()<T, 64>();
    else if (p.head_dim <= 128)
      body.template operator()<T, 128>();
    else
      body.template operator()<T, 256>();
  };
  if (p.type == AttentionType::bf16)
    with_size.template operator()<__nv_bfloat16>();
  else if (p.type == AttentionType::fp16)
    with_size.template operator()<__half>();
  else
    with_size.template operator()<float>();
}

}  // namespace hstu::cuda
