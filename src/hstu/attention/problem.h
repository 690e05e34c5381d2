// One description of a jagged attention: sizes, types, where the rows lie, the mask. The same description
// serves the choice of a kernel, the forward and the backward pass.
//
//   O_i = scale * sum over keys j that query i sees of silu(alpha q_i . k_j) * v_j        (per sample and
//   head; no softmax)
#pragma once

#include <cstdint>

namespace hstu {

enum class AttentionType { bf16, fp16, fp32 };

// Rows of (T, H, D): element (t, head, d) lies at data[t * row_stride + head * head_stride + d]; strides in
// elements.
struct AttentionRows {
  void* data = nullptr;
  std::int64_t row_stride = 0;
  std::int64_t head_stride = 0;
};

// mask.h states what the words mean. -1: unlimited. Causal: right = 0.
struct AttentionMask {
  std::int32_t left = -1;
  std::int32_t right = 0;
  std::int32_t target_group = 1;
};

struct AttentionProblem {
  AttentionType type = AttentionType::bf16;
  std::int64_t samples = 0;   // B
  std::int64_t tokens = 0;    // T: rows in all, at least offsets[B]
  std::int64_t heads = 0;     // H
  std::int64_t head_dim = 0;  // D, of q, k and v alike
  std::int64_t longest = 0;   // a bound of the tokens of a sample; 0: T
  AttentionRows q, k, v;
  const std::int64_t* offsets =
      nullptr;  // (B + 1), on the device: sample b is rows [offsets[b], offsets[b + 1])
  const std::int32_t* contexts =
      nullptr;  // (B) or none, on the device; clamped to the tokens that are no targets
  const std::int32_t* targets = nullptr;  // (B) or none, on the device; clamped to the sample's length
  AttentionMask mask;
  float alpha = 1;
  float scale = 1;
  const float* sample_scale = nullptr;  // (B) or none, on the device: multiplies `scale`
  bool deterministic = false;           // the backward pass gives the same bits every time
};

}  // namespace hstu
