// Jagged HSTU attention: o_i = sum over j <= i of silu(alpha q_i . k_j) * scale * v_j, per sample and head.
// No softmax. Source: "Actions Speak Louder than Words", equation 2, without the relative bias; DLRMv4's
// form.
//
// Queries may be fewer than tokens: query_offsets gives the rows of q of each sample, which stand for the
// sample's LAST tokens. All tokens: query_offsets == offsets. Only the candidate: one query a sample.
#pragma once

#include <cstdint>

namespace hstu::kernels {

template <typename T>
struct AttentionProblem {
  std::int64_t samples, heads, head_dim;  // B, H, D
  const std::int64_t* offsets;            // (B + 1) tokens of each sample, T = offsets[B]
  const std::int64_t* query_offsets;      // (B + 1) queries of each sample, Tq = query_offsets[B]
  T alpha;
  const T* scale;  // (B)
  const T* q;      // (Tq, H * D)
  const T* v;      // (T, 2 * H * D) is [v, k]; head h occupies columns h * D .. h * D + D - 1 of each half
  const T* k;      // v + H * D
};

// o (Tq, H * D).
template <typename T>
void attention(const AttentionProblem<T>& p, T* o);

// dq (Tq, H * D) = result + beta_q * dq; dvk (T, 2 * H * D) = result + beta_vk * dvk. The score matrix is
// computed again, block by block.
template <typename T>
void attention_backward(const AttentionProblem<T>& p, const T* d_o, T beta_q, T* dq, T beta_vk, T* dvk);

}  // namespace hstu::kernels
