// The description of a jagged attention: sizes, types, rows, mask. The CPU form and the kernels for GPUs, the
// forward and the backward pass, and the choice of a kernel all read the same description.
//
//   O_i = scale * sum over the keys j that query i sees of f(alpha q_i . k_j + beta_ij) * v_j
//
// per sample and head, where f is SiLU or the softmax over these keys, and beta a relative bias or 0. Source:
// "Actions Speak Louder than Words", equation 2.
//
// Every pointer refers to memory of the device that computes: host memory for the CPU form, memory of the
// current CUDA device for the kernels.
#pragma once

#include <cstdint>

#include "hstu/base/choice.h"
#include "hstu/kernels/dropout.h"

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
  // Not 0: of the tokens behind the contexts, counted from 0, those whose number is `hidden_phase` modulo
  // `hidden_period` begin a period, and are keys of that period alone (a token before the codes of an item).
  std::int32_t hidden_period = 0, hidden_phase = 0;
};

enum class ScoreFunction { silu, softmax };

// The kernels for GPUs that a problem asks for (route.h); automatic: the fastest that compute it. Queries
// that are fewer than the tokens (query_offsets) have kernels of their own beside `hopper` and `mma`.
enum class AttentionChoice : int { automatic, hopper, mma, plain };
inline constexpr Choice<AttentionChoice> kAttentionChoices[] = {{"auto", AttentionChoice::automatic},
                                                                {"hopper", AttentionChoice::hopper},
                                                                {"mma", AttentionChoice::mma},
                                                                {"plain", AttentionChoice::plain}};

// beta_ij = w_position[P - 1 + clamp(j - i)] + w_time[b], with the tokens i and j counted in the sample, j -
// i clamped to [1 - P, P - 1], and b the number of thresholds up to |query_time_i - key_time_j|. Tables are
// of double for fp64, otherwise of float. Null tables: no such term.
struct RelativeBias {
  const void* position_table = nullptr;      // (tables, 2 P - 1)
  const void* time_table = nullptr;          // (tables, buckets + 1)
  std::int64_t tables = 1;                   // 1: of all heads; or H
  std::int64_t positions = 0;                // P
  std::int64_t buckets = 0;                  // thresholds
  const std::int64_t* thresholds = nullptr;  // (buckets) ascending
  const std::int64_t* query_time = nullptr;  // (Tq) of the rows of q
  const std::int64_t* key_time = nullptr;    // (T) of the rows of k

  bool any() const { return position_table != nullptr || time_table != nullptr; }
};

// Keys and values of tokens before those of k and v, without gradients, in pages: element (token t of page p,
// head, d) is data[(p * page_tokens + t) * row_stride + head * head_stride + d]. The mask and the bias see
// one sample of both, in which the queries are the last tokens. Several samples may have one past.
struct CachedKeys {
  const void *k = nullptr, *v = nullptr;  // of the problem's type; null: there is no past
  std::int64_t row_stride = 0, head_stride = 0;
  std::int64_t page_tokens = 0;
  std::int64_t pasts = 0;
  const std::int32_t* pages = nullptr;         // of one past after the other
  const std::int64_t* page_offsets = nullptr;  // (pasts + 1) into pages
  const std::int64_t* lengths = nullptr;       // (pasts) tokens, at most those of its pages
  const std::int32_t* past_of = nullptr;       // (B) the past of each sample; -1: none
  const std::int64_t* time = nullptr;          // by token of a page, as key_time

  bool any() const { return k != nullptr; }
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
  // (B) or null, with query_offsets: the queries of sample b are its tokens from query_first[b] on instead.
  const std::int32_t* query_first = nullptr;
  const std::int32_t* contexts = nullptr;  // (B) or null: 0; clamped to the tokens that are not targets
  const std::int32_t* targets = nullptr;   // (B) or null: 0; clamped to the tokens of the sample
  AttentionMask mask;
  double alpha = 1;
  double scale = 1;
  const void* sample_scale = nullptr;  // (B) or null: factors of `scale`; double for fp64, otherwise float
  bool deterministic = false;          // the backward pass gives the same bits every time
  AttentionChoice kernels = AttentionChoice::automatic;
  ScoreFunction score = ScoreFunction::silu;
  // Softmax on tensor cores: log(sum over the keys of e^score), (Tq, H), which the forward pass writes and
  // the backward pass reads. Null: the backward pass takes other kernels, which compute it again (route.h).
  float* log_sums = nullptr;
  RelativeBias bias;
  CachedKeys past;
  // A row of o depends on its own keys alone, to the bit: not on other samples or rows. Slower on GPUs.
  bool row_stable = false;
  // Of the weights of pairs, scale * f(..): those of query row r and head h are a row under the key mix64(key
  // + h), with a column for each token of the sample. row_names are (Tq).
  kernels::Dropout dropout;

  std::int64_t query_rows() const { return query_offsets == nullptr ? tokens : queries; }
  const std::int64_t* offsets_of_queries() const {
    return query_offsets == nullptr ? offsets : query_offsets;
  }
};

// What the backward pass reads and writes beside the problem. dO and dq are rows as q, dk as k, dv as v.
struct AttentionGradients {
  AttentionInput d_o;
  AttentionInput o = {};  // of the forward pass, with log_sums; the other kernels do not read it
  AttentionRows dq, dk, dv;
  bool accumulate_dq = false;   // add to dq instead of overwriting it
  bool accumulate_dkv = false;  // add to dk and dv instead of overwriting them
  // Sums over all pairs, added to what is there, in a fixed order. Null: not wanted.
  void *d_position_table = nullptr, *d_time_table = nullptr;
  // Null, or all three: q, k and v are SiLU of these numbers, in rows as dq, dk and dv, whose gradients are
  // written in place of those of q, k and v. Aligned to 16 bytes. Only where multiplies_slope (route.h).
  const void *q_before = nullptr, *k_before = nullptr, *v_before = nullptr;
};

}  // namespace hstu
