// Attention of the beams of a search (attention/beams.h), of a forward pass only.
#pragma once

#include <cstdint>
#include <vector>

#include "hstu/ops/columns.h"

namespace hstu::ops {

struct BeamShape {
  std::int64_t beams = 0;                // W of each of R users
  std::int64_t heads = 0, head_dim = 0;  // H, D
  double alpha = 1;
  Tensor offsets;    // (R + 1) i64 tokens of the histories, T in total
  Tensor ancestors;  // (R * W, codes - 1) i32; undefined with one code or none
  struct Code {
    Columns k, v;  // (R * W, H * D)
  };
  std::vector<Code> codes;  // of each beam, the last is that of the query; none: a token of the history
};

// o (R * W, H * D) from q (R * W, H * D) and the keys and values of the histories, (T, H * D) each.
Variable beam_attention(Tape& tape, const Columns& q, const Columns& k, const Columns& v,
                        const BeamShape& shape);

}  // namespace hstu::ops
