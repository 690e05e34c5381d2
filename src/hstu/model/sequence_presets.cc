#include "hstu/model/sequence_presets.h"

#include <cmath>

namespace hstu {
namespace {

constexpr std::int64_t kTimeBuckets = 128;
constexpr std::int64_t kNvidiaPositions = 8192;

SequenceEncoderConfig hstu_encoder(const SequenceSizes& sizes) {
  SequenceEncoderConfig config;
  config.hstu = {.layers = sizes.layers,
                 .layer = {.dim = sizes.dim,
                           .heads = sizes.heads,
                           .head_dim = sizes.head_dim,
                           .gate = ops::GateForm::product,
                           .epsilon = 1e-6},
                 .dropout = sizes.dropout};
  config.attention_divisor = static_cast<double>(sizes.longest);
  return config;
}

SequenceEncoderConfig meta(const SequenceSizes& sizes) {
  SequenceEncoderConfig config = hstu_encoder(sizes);
  HstuLayerConfig& layer = config.hstu.layer;
  layer.norm_affine = layer.uvqk_bias = false;
  layer.output_bias = true;
  layer.alpha = 1;
  layer.uvqk_deviation = 0.02;
  layer.bias = {.positions = sizes.longest, .time_buckets = sizes.times ? kTimeBuckets : 0};
  config.positions = sizes.longest;
  config.position = Initializer::xavier_normal(sizes.longest, sizes.dim);
  return config;
}

SequenceEncoderConfig nvidia(const SequenceSizes& sizes) {
  SequenceEncoderConfig config = hstu_encoder(sizes);
  config.positions = kNvidiaPositions;
  config.position = Initializer::uniform(std::sqrt(1.0 / static_cast<double>(kNvidiaPositions)));
  return config;
}

SequenceEncoderConfig sasrec(const SequenceSizes& sizes) {
  SequenceEncoderConfig config;
  config.blocks = SequenceBlocks::sasrec;
  config.sasrec = {.layers = sizes.layers, .dim = sizes.dim, .heads = sizes.heads, .dropout = sizes.dropout};
  config.positions = sizes.longest;
  config.position = Initializer::normal(std::sqrt(1.0 / static_cast<double>(sizes.dim)));
  return config;
}

}  // namespace

SequenceEncoderConfig sequence_preset(SequencePreset preset, const SequenceSizes& sizes) {
  SequenceEncoderConfig config = preset == SequencePreset::meta     ? meta(sizes)
                                 : preset == SequencePreset::nvidia ? nvidia(sizes)
                                                                    : sasrec(sizes);
  config.item_factor = std::sqrt(static_cast<double>(sizes.dim));
  config.input_dropout = sizes.dropout;
  return config;
}

}  // namespace hstu
