// Model: the interface of a model for training, evaluation and prediction. A model names its features, lays
// out batches, and computes outputs; an Objective (objective/objective.h) says what these mean. The caller
// owns its tables and optimizers.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hstu/batching/batch.h"
#include "hstu/batching/batch_layout.h"
#include "hstu/model/draws.h"
#include "hstu/model/layer_flops.h"
#include "hstu/model/parameters.h"

namespace hstu {

// The part of a sample whose tokens depend on nothing behind them: its contexts and the first events of its
// history. Their keys and values may be kept between requests (ops/history_keys.h).
struct KeptTokens {
  std::int64_t layers = 0;       // 0: nothing may be kept
  std::int64_t width = 0;        // H * D: columns of a layer's keys, and of its values
  std::int64_t contexts = 0;     // tokens before the first event
  std::int64_t of_event = 1;     // tokens
  std::int64_t last_events = 0;  // so many of the last events of a history are computed in every pass
  bool bias = false;             // attention has a relative bias, and may read the times of keys and, of the
                                 // query of an event, that of the next one
};

class Model {
 public:
  virtual ~Model() = default;

  virtual const ParameterSet& parameters() const = 0;
  // The same, to which parameters may be added before move_to().
  virtual ParameterSet& parameters() = 0;
  // Moves parameters, gradients and constants to the context's device. forward() then computes there, what
  // it computes for every token in `compute` (f32 or bf16); parameters and their gradients remain f32.
  virtual void move_to(const Context& context, DType compute) = 0;
  // The features in the order of `rows` below; each has a table of its own name with rows of row_width().
  virtual std::vector<FeatureSpec> features() const = 0;
  virtual std::int64_t embedding_dim() const = 0;
  // Of the rows of a feature: E, unless they are projected (projected_tables.h).
  virtual std::int64_t row_width(std::size_t /*feature*/) const { return embedding_dim(); }
  // (n, E): rows (n, row_width(feature)) of a table as forward() reads them.
  virtual Variable projected(Tape& /*tape*/, std::size_t /*feature*/, const Variable& rows) const {
    return rows;
  }
  // Whether the candidates of a request may share one history (Candidate::others): each then has the outputs
  // that it has alone, to the bit on the host.
  virtual bool shares_histories() const { return false; }
  // What the layers keep of histories where Batch::history_keys is set.
  virtual KeptTokens kept_tokens() const { return {}; }
  // Lays out the batches that forward() reads; valid as long as the model.
  virtual const BatchLayout& layout() const = 0;

  // Outputs (R, outputs) from the rows of each feature's distinct ids, rows[f] (n_f, row_width(f)).
  virtual Variable forward(Tape& tape, const Batch& batch, std::span<const Variable> rows,
                           const Draws& draws) const = 0;

  // Why every rank must have all heads of the layers; "": ParameterSet::divide() may divide them.
  virtual std::string why_whole_heads() const {
    return layers().layers == 0 ? "it has no HSTU layers, whose heads ranks could share" : "";
  }
  // The sizes of the HSTU layers, by which samples are balanced over ranks; no layers: by their tokens.
  virtual HstuStackConfig layers() const { return {}; }
  // FLOPs of the layers for a batch that layout() laid out, from its lengths and masks. Zeros: the model does
  // not count them, and reports have no figures made of them.
  virtual StackFlops flops(const Batch& /*batch*/) const { return {}; }
};

}  // namespace hstu
