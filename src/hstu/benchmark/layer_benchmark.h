// A stack of HSTU layers, forward and backward, by itself: what dominates a training step at long histories.
#pragma once

#include <cstdint>
#include <string>

#include "hstu/base/json.h"
#include "hstu/model/recompute.h"
#include "hstu/ops/gate.h"
#include "hstu/options/options.h"

namespace hstu {

struct LayerBenchmarkOptions {
  std::int64_t samples = 32, tokens = 4096;  // of the batch; of each sample
  std::int64_t layers = 8, heads = 4, head_dim = 128;
  std::int64_t dim = 0;  // of the residual stream; 0: heads * head_dim
  ops::GateForm gate = ops::GateForm::product;
  Recompute recompute = {};
  double dropout = 0.1;
  bool deterministic = false;  // training is, unless it is configured otherwise; rivals are not
  std::int64_t rounds = 7;
  std::string device = "auto";
  Precision precision = Precision::bf16;
  AttentionChoice attention = AttentionChoice::automatic;
};

// Normally distributed activations. Gives {"device", "gpu", "samples", ... "burst", "sustained",
// "share_of_peak" (of the sustained rounds; null where the GPU is not in the table of data sheets),
// "peak_gib", "stages": the list of stage_table.h over as many further rounds}. "burst" (a quarter of a
// second idle before each round) and "sustained" (round after round, after a second of them) are
// {"forward_ms", "backward_ms", "total_ms" (medians over rounds), "total_ms_min", "total_ms_max", "tflops"}.
// FLOPs are those of model/layer_flops.h.
Json benchmark_layer(const LayerBenchmarkOptions& options);

}  // namespace hstu
