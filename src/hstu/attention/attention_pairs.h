// The CPU form of what the blocks of keys do not compute (attention_cpu.h): softmax, a relative bias, cached
// keys, hidden keys, dropout. Blocks of queries meet all their keys; sums are in ascending order of keys.
#pragma once

#include "hstu/attention/problem.h"

namespace hstu::cpu {

// Whether a problem needs this form.
bool needs_pairs(const AttentionProblem& problem);

// As attention_forward and attention_backward of attention_cpu.h, for checked problems in host memory.
void attention_forward_by_pairs(const AttentionProblem& problem, const AttentionRows& o);
void attention_backward_by_pairs(const AttentionProblem& problem, const AttentionGradients& gradients);

}  // namespace hstu::cpu
