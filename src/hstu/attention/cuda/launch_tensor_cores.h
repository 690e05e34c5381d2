// What the launches of the kernels for tensor cores share: the head size and the type that they compute with,
// and their arguments beside the problem's sizes.
#pragma once

#include <algorithm>
#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "hstu/attention/checks.h"
#include "hstu/attention/cuda/bias.h"
#include "hstu/attention/cuda/limits.h"
#include "hstu/attention/cuda/schedule.h"
#include "hstu/attention/hidden_keys.h"
#include "hstu/attention/problem.h"

namespace hstu::cuda {

inline std::int64_t aligned(std::int64_t bytes) {
  return (bytes + kScratchAlignment - 1) / kScratchAlignment * kScratchAlignment;
}

// The head size that the kernel computes with.
inline int width_of(const AttentionProblem& p) {
  return static_cast<int>(std::max<std::int64_t>(64, p.head_dim));
}

inline HiddenKeys hidden_keys_of(const AttentionProblem& p) {
  return {p.mask.hidden_period, p.mask.hidden_phase};
}

// The factor of the scores in the arguments of kernels: alpha / 2, of a softmax alpha.
inline float score_factor_of(const AttentionProblem& p) {
  return static_cast<float>(p.alpha) / (p.score == ScoreFunction::softmax ? 1 : 2);
}
// alpha log2(e).
inline float exponent_of(const AttentionProblem& p) {
  return static_cast<float>(p.alpha * 1.4426950408889634);
}

// About as many tiles as an H200 computes at once: half as many if two blocks share each tile.
inline TileOrder forward_order(int cluster) {
  return {true, 128 / cluster, 512 / cluster};
}
// Calls body.template operator()<T, width>() for the problem's type and width.
template <typename Body>
void with_kernel(const AttentionProblem& p, const Body& body) {
  const auto with_width = [&]<typename T>() {
    if (width_of(p) == 64)
      body.template operator()<T, 64>();
    else if (width_of(p) == 128)
      body.template operator()<T, 128>();
    else
      body.template operator()<T, 256>();
  };
  if (p.type == AttentionType::bf16)
    with_width.template operator()<__nv_bfloat16>();
  else
    with_width.template operator()<__half>();
}

// The same for a softmax, which has fewer widths.
template <typename Body>
void with_softmax_kernel(const AttentionProblem& p, const Body& body) {
  with_kernel(p, [&]<typename T, int kD>() {
    if constexpr (kD <= kSoftmaxTensorHead) body.template operator()<T, kD>();
  });
}

// Calls body(arguments), with the bias beside them if there is one.
template <typename Biased, typename Arguments, typename Body>
void with_bias(const Arguments& arguments, const Bias* bias, const Body& body) {
  if (bias == nullptr)
    body(arguments);
  else
    body(Biased{arguments, *bias});
}

}  // namespace hstu::cuda
