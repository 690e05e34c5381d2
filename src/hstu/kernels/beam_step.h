// A step of a beam search over a trie (codes/code_trie.h): of all prefixes that continue a beam by one code,
// the most probable.
#pragma once

#include <cstdint>

#include "hstu/device/stream.h"

namespace hstu::kernels {

// Every user has as many places for beams before the step, and as many after it. A place without a beam has
// the node -1. Of beam b of user u, the rows are u * before + b, or u * width + b after the step.
//
// The score of a prefix is that of its beam plus the log-softmax over the `codes` logits of the beam, in f32;
// one that is not a number counts as -infinity. A user's beams are in descending order of scores, and where
// these are equal in the order of tuples.
struct BeamStep {
  std::int64_t users = 0, before = 0, width = 0;  // R; W before and after the step
  std::int64_t codes = 0;                         // C of the level
  const float* logits = nullptr;                  // (R * before, C)
  const float* score = nullptr;                   // (R * before)
  const std::int32_t* node = nullptr;             // (R * before) of the level above
  // CodeTrie::Level
  const std::int32_t* first_child = nullptr;
  const std::int32_t* code = nullptr;
  // Rows of the beams that each came from, one for each step before: (R * before, steps).
  std::int64_t steps = 0;
  const std::int32_t* ancestors = nullptr;

  float* next_score = nullptr;             // (R * width); -infinity without a beam
  std::int32_t* next_node = nullptr;       // (R * width); -1 without a beam
  std::int32_t* next_code = nullptr;       // (R * width) code + first_row; -1 without a beam
  std::int32_t first_row = 0;              // of the level's codes among those of all levels
  std::int32_t* next_ancestors = nullptr;  // (R * width, steps + 1), the last is the beam; null: not wanted
};

// Floats of scratch memory on a GPU.
constexpr std::int64_t beam_step_floats(const BeamStep& p) {
  return p.users * p.before * (p.codes + 2);
}

void beam_step(const BeamStep& p, HostStream);
void beam_step(const BeamStep& p, CudaStream);

}  // namespace hstu::kernels
