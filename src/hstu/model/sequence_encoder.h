// The encoder of a retrieval model: from the rows of a history's items to one vector for each position that
// predicts an item.
//
//   x = drop(item_factor * item row + position row + added rows), then the blocks, then the output's
//   normalisation
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hstu/base/choice.h"
#include "hstu/model/hstu_stack.h"
#include "hstu/model/layer_norm.h"
#include "hstu/model/sasrec_stack.h"
#include "hstu/ops/gather_sum.h"

namespace hstu {

enum class SequenceBlocks { hstu, sasrec };
inline constexpr Choice<SequenceBlocks> kSequenceBlocks[] = {{"hstu", SequenceBlocks::hstu},
                                                             {"sasrec", SequenceBlocks::sasrec}};

enum class OutputNorm {
  unit,        // each row divided by max(its Euclidean norm, epsilon)
  layer_norm,  // without a weight and a bias
  none,
};
inline constexpr Choice<OutputNorm> kOutputNorms[] = {
    {"unit", OutputNorm::unit}, {"layer_norm", OutputNorm::layer_norm}, {"none", OutputNorm::none}};

struct SequenceEncoderConfig {
  SequenceBlocks blocks = SequenceBlocks::hstu;
  HstuStackConfig hstu;          // of these blocks alone, as
  SasrecStackConfig sasrec;      // of these
  double attention_divisor = 1;  // N of HSTU's attention: of all samples
  std::int64_t positions = 0;    // P: rows of the position table
  Initializer position = {};     // its initial values
  double item_factor = 1;
  double input_dropout = 0;
  OutputNorm output = OutputNorm::unit;
  double output_epsilon = 1e-6;

  std::int64_t dim() const { return blocks == SequenceBlocks::hstu ? hstu.layer.dim : sasrec.dim; }
};

// The tokens of a batch: its samples' histories, one token for each event.
struct SequenceTokens {
  Tensor item;      // (T) i32: the row of each token's item
  Tensor position;  // (T) i32: its row of the position table, counted from the oldest event that is kept
  // rows is undefined in `all`. With a time table both have query_time, and `all` has key_time.
  StackRows all, wanted;
  const HistoryKeys* keys = nullptr;        // of the samples' earlier tokens
  std::vector<ops::GatherTerm> added = {};  // to the rows of each token, in the type of items
};

class SequenceEncoder {
 public:
  // Adds encoder.position and the blocks layers.0, layers.1, ... to the set.
  SequenceEncoder(ParameterSet& set, const SequenceEncoderConfig& config);

  // F (n, E) of the wanted tokens, from the rows of distinct items (I, E), in their type. Dropout is drawn at
  // kInputPlace and from kFirstLayerPlace on.
  Variable operator()(Tape& tape, const Variable& items, const SequenceTokens& tokens,
                      const Draws& draws) const;

  const SequenceEncoderConfig& config() const { return config_; }
  std::int64_t layers() const {
    return config_.blocks == SequenceBlocks::hstu ? config_.hstu.layers : config_.sasrec.layers;
  }
  // H * D: columns of a layer's keys, and of its values.
  std::int64_t key_width() const {
    return config_.blocks == SequenceBlocks::hstu ? config_.hstu.layer.heads * config_.hstu.layer.head_dim
                                                  : config_.sasrec.dim;
  }
  bool has_bias() const { return config_.blocks == SequenceBlocks::hstu && config_.hstu.layer.bias.any(); }
  // Whether the batches need query_time and key_time.
  bool needs_times() const {
    return config_.blocks == SequenceBlocks::hstu && config_.hstu.layer.bias.time_buckets > 0;
  }

 private:
  SequenceEncoderConfig config_;
  const Parameter& position_;
  std::optional<HstuStack> hstu_;
  std::optional<SasrecStack> sasrec_;
  std::optional<LayerNorm> output_norm_;
};

}  // namespace hstu
