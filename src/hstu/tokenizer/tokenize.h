// From vectors of items to a folder of codes. docs/semantic-ids.md
#pragma once

#include <cstdint>

#include "hstu/base/choice.h"
#include "hstu/base/files.h"
#include "hstu/base/json.h"
#include "hstu/tokenizer/collisions.h"
#include "hstu/tokenizer/rq_vae.h"

namespace hstu {

enum class TokenizeMethod {
  residual_kmeans,
  rq_vae,
  random,  // codes without a meaning: what a tokenizer must exceed
};
inline constexpr Choice<TokenizeMethod> kTokenizeMethods[] = {
    {"residual-kmeans", TokenizeMethod::residual_kmeans},
    {"rq-vae", TokenizeMethod::rq_vae},
    {"random", TokenizeMethod::random}};

struct TokenizeOptions {
  Path vectors = {}, ids = {}, output = {};
  Path append =
      {};  // in place of `output`: a folder of codes, whose sizes and methods take the others' place
  TokenizeMethod method = TokenizeMethod::residual_kmeans;
  Collisions collisions = Collisions::reassign;
  ResidualKMeansOptions sizes = {};
  RqVaeOptions rq_vae = {};
};

// Writes the folder options.output, which appears when it is complete, or gives the items that options.append
// does not have codes there; those that it has keep theirs. Returns what was done: levels with their use and
// perplexity, tuples, collisions, the error of reconstruction.
Json tokenize(const TokenizeOptions& options);

}  // namespace hstu
