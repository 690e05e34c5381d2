// The published encoders as configurations of SequenceEncoder (docs/model.md has their formulas).
#pragma once

#include <cstdint>

#include "hstu/base/choice.h"
#include "hstu/model/sequence_encoder.h"

namespace hstu {

enum class SequencePreset {
  meta,    // HSTU of Meta's generative-recommenders: relative bias, no weights of norms, alpha 1
  nvidia,  // HSTU of NVIDIA's recsys-examples: no bias of pairs, weights of norms, alpha 1 / sqrt(head_dim)
  sasrec,  // the baseline of Meta's
};
inline constexpr Choice<SequencePreset> kSequencePresets[] = {
    {"meta", SequencePreset::meta}, {"nvidia", SequencePreset::nvidia}, {"sasrec", SequencePreset::sasrec}};

struct SequenceSizes {
  std::int64_t dim = 50;  // E
  std::int64_t layers = 2;
  std::int64_t heads = 1;
  std::int64_t head_dim = 50;  // of HSTU; SASRec's is dim / heads
  std::int64_t longest =
      211;               // N: what a history may have at most. meta: the divisor, rows of the position
                         // table and P of the bias (published: history length + 11); nvidia: the divisor
  double dropout = 0.2;  // of the input and of the blocks
  bool times = true;     // meta: a time table; false for logs without times
};

SequenceEncoderConfig sequence_preset(SequencePreset preset, const SequenceSizes& sizes);

}  // namespace hstu
