// The description of a jagged attention: sizes, types, rows, mask. The CPU form and the kernels for GPUs, the
// forward and the backward pass, and the choice of a kernel all read the same description.
//
//   O_i = scale * sum over the keys j that query i sees of silu(alpha q_i . k_j) * v_j
//
// per sample and head, without softmax. Source: "Actions Speak Louder than Words", equation 2, without the
// relative bias.
//
// Every pointer refers to memory of the device that computes: host memory for the CPU form, memory of the
// current CUDA device for the kernels.
#pragma once

#include <cstdint>

namespace hstu {

enum class AttentionType { bf16, fp16, fp32, fp64 };

// Rows of (T, H, D) that are read: element (t, head, d) is data[t * row_stride + head * head_stride + d].
// Strides count elements. Kernels for tensor cores need `data` aligned to 16 bytes and strides in multiples
// of 8; the other forms need the alignment of the type.
struct AttentionInput {
  const void* data = nullptr;
  std::int64_t row_stride = 0;
  std::int64_t head_stride = 0;
};

// The same for rows that are written.
struct AttentionRows {
  void* data = nullptr;
  std::int64_t row_stride = 0;
  std::int64_t head_stride = 0;

  operator AttentionInput() const { return {data, row_stride, head_stride}; }
};

// mask.h defines the terms. -1: unlimited. Causal: right = 0.
struct AttentionMask {
  std::int32_t left = -1;
  std::int32_t right = 0;
  std::int32_t target_group = 1;
};

struct AttentionProblem {
  AttentionType type = AttentionType::bf16;  // of q, k, v, o and their gradients
  std::int64_t samples = 0;                  // B
  std::int64_t tokens = 0;                   // T: rows of k and v, at least offsets[B]
  std::int64_t queries = 0;  // Tq: rows of q and o with query_offsets, at least query_offsets[B]; else unused
  std::int64_t heads = 0;    // H
  std::int64_t head_dim = 0;  // D, of q, k and v
  std::int64_t longest = 0;   // an upper bound of the tokens of a sample; 0: T
  AttentionInput q, k, v;     // (Tq, H, D), (T, H, D), (T, H, D)
  // (B + 1), ascending: the tokens of sample b are the rows [offsets[b], offsets[b + 1]) of k and v.
  const std::int64_t* offsets = nullptr;
  // (B + 1), ascending: the queries of sample b are the rows [query_offsets[b], query_offsets[b + 1]) of q
  // and o. They are the sample's last tokens. Null: every token is a query, and its row is the same in all.
  const std::int64_t* query_offsets = nullptr;
  const std::int32_t* contexts = nullptr;  // (B) or null: 0; clamped to the tokens that are not targets
  const std::int32_t* targets = nullptr;   // (B) or null: 0; clamped to the tokens of the sample
  AttentionMask mask;
  double alpha = 1;
  double scale = 1;
  const void* sample_scale = nullptr;  // (B) or null: factors of `scale`; double for fp64, otherwise float
  bool deterministic = false;          // the backward pass gives the same bits every time

  std::int64_t query_rows() const { return query_offsets == nullptr ? tokens : queries; }
  const std::int64_t* offsets_of_queries() const {
    return query_offsets == nullptr ? offsets : query_offsets;
  }
};

// What the backward pass reads and writes beside the problem. dO and dq are rows as q, dk as k, dv as v.
struct AttentionGradients {
  AttentionInput d_o;
  AttentionRows dq, dk, dv;
  bool accumulate_dq = false;   // add to dq instead of overwriting it
  bool accumulate_dkv = false;  // add to dk and dv instead of overwriting them
  // Null, or all three: q, k and v are SiLU of these numbers, in rows as dq, dk and dv, whose gradients are
  // written in place of those of q, k and v. Aligned to 16 bytes. Only where multiplies_slope (route.h).
  const void *q_before = nullptr, *k_before = nullptr, *v_before = nullptr;
};

}  // namespace hstu
