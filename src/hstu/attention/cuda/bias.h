// The relative bias of RelativeBias (problem.h) as the kernels for GPUs read it, and the gradients of its
// tables.
//
// A gradient of a table is a sum over very many pairs, which blocks add in an order of their own. So that it
// has the same bits every time, it is summed exactly: a number of fp32 is an integer of 24 bits times a power
// of two, and each entry of a table has kExponentBins sums of integers, one for eight neighbouring powers.
// Additions of integers give the same in any order. What a block adds is a sum of fp32 in an order that its
// rows alone decide.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "hstu/attention/problem.h"

namespace hstu::cuda {

inline constexpr int kExponentBins = 32;

// Exact sums of one gradient: [copies][kExponentBins][entries]. Blocks divide the copies, so that they
// seldom meet at an address.
struct ExactSums {
  unsigned long long* bins = nullptr;  // null: the gradient is not wanted
  std::int32_t entries = 0, copies = 1;
  std::uint32_t* not_finite = nullptr;  // becomes 1 if an infinite number or NaN is added
};

// Times of rows relative to the first key of their sample, and of the 32 (16) rows from each row on, up to
// the end of the sample, the smallest and the largest. kFarTick: more than 2^29 apart from the first key; the
// smallest is above the largest if one of the 32 (16) is.
struct Ticks {
  const std::int32_t* of_rows = nullptr;
  const int2 *spans = nullptr, *short_spans = nullptr;
  const std::int64_t* times = nullptr;  // as they are
};
inline constexpr std::int32_t kFarTick = -2147483647 - 1;
inline constexpr int kRowsOfSpan = 32, kRowsOfShortSpan = 16;

// Tables are halved where they are prepared (prepare_bias with `ticks`).
struct Bias {
  const float* position = nullptr;  // null: no such term
  const float* time = nullptr;      // null: no such term
  std::int32_t positions = 0, buckets = 0;
  std::int32_t tables = 1;  // 1, or one for each head
  const std::int64_t* thresholds = nullptr;
  Ticks queries, keys;  // of_rows and spans: only where prepared (prepare_bias)
  // Up to 1,024 thresholds as 32 bits, and INT_MAX twice behind the last; for each class of distances
  // (distance_class in bias.cuh) the number of thresholds up to its smallest, plus kSeveralThresholds if it
  // has more than one, and the next threshold. Null: there are more.
  const std::int32_t* steps = nullptr;
  const int2* classes = nullptr;
  ExactSums d_position, d_time;
};

// Bytes that prepare_bias needs: for thresholds, with `ticks` times and halves of the tables, with
// `gradients` the exact sums of both.
std::int64_t bias_bytes(const AttentionProblem& problem, bool ticks, bool gradients);

// Without anything that a launch prepares: kernels search the thresholds.
Bias bias_as_it_is(const RelativeBias& from);

// The bias of a problem that has one. Launches what writes `memory`: classes of distances, with `ticks` what
// kernels for tensor cores read (every token must be a query, and thresholds at most 1,024), and zeros into
// the sums of the gradients that are not null.
Bias prepare_bias(const AttentionProblem& problem, bool ticks, const AttentionGradients* gradients,
                  void* memory, cudaStream_t stream);

// Adds the exact sums to the gradients.
void finish_bias(const Bias& bias, const AttentionGradients& gradients, cudaStream_t stream);

}  // namespace hstu::cuda
