// What the backward pass of a softmax needs of each query and head, from the results of the forward pass.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "hstu/attention/cuda/schedule.h"
#include "hstu/attention/mask.h"
#include "hstu/attention/problem.h"

namespace hstu::cuda {

// Of 64 queries of a head: log2 of the sums of e^score, then the means of dP by the weights. Both are 0 for
// rows that do not exist.
inline constexpr int kStatisticsRows = 64;

// Where, in the floats of a batch, those of a block of 64 queries begin: of the head whose first tile of
// kBackwardTile rows has the number `first` (ScheduleItem).
HSTU_HOST_DEVICE std::int64_t statistics_place(std::int32_t first, std::int32_t block) {
  return (static_cast<std::int64_t>(first) * (kBackwardTile / kStatisticsRows) + block) *
         (2 * kStatisticsRows);
}

// 0 without a softmax.
std::int64_t softmax_statistics_bytes(const AttentionProblem& problem);

// `schedule`: of tiles of kBackwardTile rows. Reads problem.log_sums, gradients.o and gradients.d_o.
void make_softmax_statistics(const AttentionProblem& problem, const AttentionGradients& gradients,
                             const Schedule& schedule, float* statistics, cudaStream_t stream);

}  // namespace hstu::cuda
