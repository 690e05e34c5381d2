// Sizes and switches of the model of semantic ids.
#pragma once

#include <cstdint>
#include <string>

#include "hstu/base/choice.h"
#include "hstu/base/files.h"
#include "hstu/model/recompute.h"
#include "hstu/objective/retrieval_objective.h"
#include "hstu/ops/activation.h"

namespace hstu {

enum class CodeBlocks {
  softmax,  // of a decoder (model/decoder_stack.h)
  hstu,     // HSTU's layers in its place
};
inline constexpr Choice<CodeBlocks> kCodeBlocks[] = {{"softmax", CodeBlocks::softmax},
                                                     {"hstu", CodeBlocks::hstu}};

enum class CodePositions {
  none,     // the order of tokens shows by the causal mask alone, as in NVIDIA's sid_gr
  learned,  // a row for each place is added to a token
  rotary,   // queries and keys are turned by their places
};
inline constexpr Choice<CodePositions> kCodePositions[] = {
    {"none", CodePositions::none}, {"learned", CodePositions::learned}, {"rotary", CodePositions::rotary}};

enum class CodeHeads {
  shared,    // training takes softmax over the codes of all levels
  separate,  // over those of the level that is asked for
};
inline constexpr Choice<CodeHeads> kCodeHeads[] = {{"shared", CodeHeads::shared},
                                                   {"separate", CodeHeads::separate}};

enum class CodeTargets {
  every_item,  // each item of a history but the first, and the candidate
  candidate,   // the candidate alone
};
inline constexpr Choice<CodeTargets> kCodeTargets[] = {{"every_item", CodeTargets::every_item},
                                                       {"candidate", CodeTargets::candidate}};

struct SemanticIdsConfig {
  Path codes;                   // codes/codes_file.h
  std::int64_t first_item = 0;  // what read_codes() adds to the ids of a form without ids
  std::string codes_id;         // codes_checksum() that the codes must have; "": any
  CodeBlocks block = CodeBlocks::softmax;
  std::int64_t dim = 128;  // D: width of codes and tokens
  std::int64_t layers = 4;
  std::int64_t heads = 6;
  std::int64_t head_dim = 64;
  std::int64_t hidden = 0;  // of the MLP of softmax blocks; 0: 4 D
  ops::Activation activation = ops::Activation::gelu;
  CodePositions positions = CodePositions::learned;
  double dropout = 0.1;
  CodeHeads head = CodeHeads::separate;
  CodeTargets targets = CodeTargets::every_item;
  std::int64_t beam = 20;  // prefixes that a search keeps
  SeenItems exclude_seen = SeenItems::none;
  Recompute recompute = {.norm = true};  // of the blocks

  // Filled from the data configuration.
  std::int64_t history = 0;  // events, at most

  std::int64_t mlp_width() const { return hidden > 0 ? hidden : 4 * dim; }
};

}  // namespace hstu
