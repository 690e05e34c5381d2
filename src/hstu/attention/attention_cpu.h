// Attention on the CPU: the specification of every other form. It computes all that a problem can describe,
// in fp32 and fp64, and gives the same bits for any number of threads.
#pragma once

#include "hstu/attention/problem.h"

namespace hstu::cpu {

// o: rows as q. Rows of no sample are not touched. Both throw Error for offsets that are not valid
// (check_offsets) and for rows whose stride is below the head size.
void attention_forward(const AttentionProblem& problem, const AttentionRows& o);

// The score matrix is computed again, block by block.
void attention_backward(const AttentionProblem& problem, const AttentionGradients& gradients);

}  // namespace hstu::cpu
