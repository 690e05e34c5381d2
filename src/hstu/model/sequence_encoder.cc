#include "hstu/model/sequence_encoder.h"

#include "hstu/model/stages.h"
#include "hstu/ops/convert.h"
#include "hstu/ops/gather_sum.h"
#include "hstu/ops/norm.h"

namespace hstu {

SequenceEncoder::SequenceEncoder(ParameterSet& set, const SequenceEncoderConfig& config)
    : config_(config),
      position_(set.add("encoder.position", {config.positions, config.dim()}, config.position)) {
  require(config.positions > 0 && config.dim() > 0, "sequence encoder: expected positions and a width");
  if (config.blocks == SequenceBlocks::hstu)
    hstu_.emplace(set, "layers", config.hstu);
  else
    sasrec_.emplace(set, "layers", config.sasrec);
  if (config.output == OutputNorm::layer_norm)
    output_norm_.emplace(set, "output_norm", config.dim(), config.output_epsilon, false);
}

Variable SequenceEncoder::operator()(Tape& tape, const Variable& items, const SequenceTokens& tokens,
                                     const Draws& draws) const {
  StageRange stage(tape, kPreprocessorStage);
  const DType type = items.value().dtype();
  std::vector<ops::GatherTerm> terms = {{items, tokens.item, config_.item_factor},
                                        {ops::weight(tape, position_, type), tokens.position, 1}};
  terms.insert(terms.end(), tokens.added.begin(), tokens.added.end());
  Variable x = ops::gather_sum(
      tape, terms, draws.dropout(config_.input_dropout, kInputPlace, tokens.all.names));  // (T, E)
  if (hstu_) {
    const StackMask mask{.mask = {}, .contexts = {}, .targets = {}, .keys = tokens.keys};
    x = (*hstu_)(tape, x, tokens.all, tokens.wanted, 1 / config_.attention_divisor, draws, kFirstLayerPlace,
                 mask);
  } else {
    x = (*sasrec_)(tape, x, tokens.all, tokens.wanted, draws, kFirstLayerPlace, tokens.keys);
  }
  stage.next(kHeadStage);
  if (output_norm_) return (*output_norm_)(tape, x);
  return config_.output == OutputNorm::unit ? ops::l2_normalise(tape, x, config_.output_epsilon) : x;
}

}  // namespace hstu
