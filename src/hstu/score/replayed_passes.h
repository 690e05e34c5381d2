// Forward passes of a model whose parameters do not change: on a GPU, of batches of the same sizes the
// launches are recorded once and replayed as a CUDA graph, whose replay costs the host one call.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <vector>

#include "hstu/batching/batch.h"
#include "hstu/device/launch_recording.h"
#include "hstu/experiment/learner.h"
#include "hstu/ops/convert.h"

namespace hstu {

// In place of outputs_of (step/outputs.h), of one learner and one object Batch.
class ReplayedPasses {
 public:
  // The outputs of a replayed pass are valid until the next call.
  Tensor outputs(Learner& learner, const Batch& batch);
  std::int64_t replays() const { return replays_; }  // passes that were one call

 private:
  // What the launches of a pass were made of: sizes and places of the batch's columns.
  using Key = std::vector<std::int64_t>;
  struct Pass {
    Key key;
    std::vector<Tensor> rows;  // what the recorded launches read, by feature
    Tensor outputs;
    std::optional<LaunchRecording> recording;  // from the second time on
    bool is_refused = false;                   // it does more than launch kernels
  };
  static constexpr std::size_t kMost = 16;  // sizes that are remembered, the most recently used ones

  static Key key_of(const Batch& batch);
  Pass& pass_of(Key key);
  void record(Learner& learner, const Batch& batch, Pass& pass);

  ops::KeptWeights weights_;
  bool has_weights_ = false;
  std::shared_ptr<MemoryPool> memory_;
  std::int64_t replays_ = 0;
  std::list<Pass> passes_;  // the most recently used first
};

}  // namespace hstu
