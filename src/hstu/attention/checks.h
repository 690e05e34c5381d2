// Checks that look at a description, or at lists in host memory: none of them needs a GPU. They throw Error
// with the field and its value.
#pragma once

#include <cstdint>

#include "hstu/attention/problem.h"

namespace hstu {

// Sizes, mask, factors, strides and alignments of the inputs.
void check_attention(const AttentionProblem& problem);

// The same, and the limits of the kernels for GPUs.
void check_attention_on_gpu(const AttentionProblem& problem);

// Strides and alignment of rows that are read.
void check_input(const AttentionProblem& problem, const char* name, const AttentionInput& rows);

// An output of `rows` rows: no stride is negative, and no two of its (rows, H) vectors of D elements share an
// element.
void check_output(const AttentionProblem& problem, const char* name, const AttentionRows& output,
                  std::int64_t rows);

// Scratch memory on a device.
struct AttentionScratch {
  void* data = nullptr;  // aligned to kScratchAlignment; null where no bytes are needed
  std::int64_t bytes = 0;
};
inline constexpr std::int64_t kScratchAlignment = 256;

void check_scratch(const AttentionScratch& scratch, std::int64_t needed_bytes);

// The lists of a problem (problem.h) must be in host memory for the two functions that follow.
//
// Offsets that begin below 0, decrease or end beyond the rows; samples of more than `longest` tokens; more
// queries than tokens in a sample.
void check_offsets(const AttentionProblem& problem);

// What is defined but hardly ever meant: contexts and targets that are negative or would be clamped, factors
// of samples that are not finite.
void check_counts(const AttentionProblem& problem);

}  // namespace hstu
