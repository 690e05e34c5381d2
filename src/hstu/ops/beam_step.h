// A step of a beam search (kernels/beam_step.h) on tensors.
#pragma once

#include <cstdint>

#include "hstu/tensor/tensor.h"

namespace hstu::ops {

// The beams of R users, W places for each, on one device.
struct Beams {
  std::int64_t width = 0;  // W
  Tensor score;            // (R * W) f32
  Tensor node;             // (R * W) i32 in the trie's level; -1: no beam
  Tensor code;             // (R * W) i32 number of the last code among those of all levels; -1: no beam
  Tensor ancestors;        // (R * W, codes - 1) i32; undefined with one code
};

// The empty prefix of each user.
Beams first_beams(std::int64_t users, const Context& context);

// A level of a trie, on the device of the beams: codes/code_trie.h.
struct TrieLevel {
  Tensor code, first_child;    // i32
  std::int32_t first_row = 0;  // number of code 0 among the codes of all levels
};

// The `width` best of each user behind `beams`, of which level `level` has the codes. logits: (R * W, codes)
// f32.
Beams beam_step(const TrieLevel& trie, const Beams& beams, std::int64_t level, const Tensor& logits,
                std::int64_t width, const Context& context);

}  // namespace hstu::ops
