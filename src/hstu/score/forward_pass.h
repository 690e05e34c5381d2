// A trained model for candidates: the samples, batches and forward pass of an evaluation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "hstu/batching/request_history.h"
#include "hstu/batching/sample_builder.h"
#include "hstu/checkpoint/checkpoint.h"
#include "hstu/dataset/dataset.h"
#include "hstu/device/pinned_memory.h"
#include "hstu/device/stream.h"
#include "hstu/experiment/learner.h"
#include "hstu/score/history_cache.h"
#include "hstu/score/replayed_passes.h"
#include "hstu/score/request_events.h"
#include "hstu/task/task.h"

namespace hstu {

class ForwardPass {
 public:
  // The model of `checkpoint`, without its optimizer's state, for histories from `dataset`, which must
  // outlive it. `task`: of the options and this dataset. `row_stable`: as Context has it. Throws Error if the
  // checkpoint does not fit.
  ForwardPass(const RunOptions& options, const Checkpoint& checkpoint, const Dataset& dataset, Task task,
              bool row_stable = false);

  // From now on candidates have events of their own (Candidate::events). What a batch needs of them is copied
  // to `memory`, whose dataset is that of the constructor; it must outlive the pass.
  void read_requests(EventMemory& memory) { memory_ = &memory; }
  // From now on keys of the histories of such candidates are kept between batches. Changes no bit of any
  // output on the host; on a GPU sums are divided differently. False where the model can keep none, and where
  // contexts are made of the item.
  bool keep_histories(const HistoryCache::Limits& limits);
  // Null: none are kept.
  const HistoryCache* cache() const { return cache_ ? &*cache_ : nullptr; }

  // The model's outputs for the samples of the candidates, which the learner's stream computes; undefined if
  // they have no token. Valid until the next call, before whose work the stream may be given a copy of them.
  Tensor outputs(std::span<const Candidate> candidates);
  std::int64_t replays() const { return passes_.replays(); }  // replayed_passes.h
  // Of all calls of outputs(): until their batches were complete, and from then until the device had its
  // work.
  struct Seconds {
    double batch = 0, launches = 0;
  };
  const Seconds& seconds() const { return seconds_; }
  // Of the latest call.
  const Batch& batch() const { return turns_[turn_].batch; }
  const Samples& built() const { return built_; }

  const SampleBuilder& samples() const { return samples_; }
  Learner& learner() { return learner_; }
  const Learner& learner() const { return learner_; }

 private:
  void build(std::span<const Candidate> candidates, Batch& batch);
  void build_requests(std::span<const Candidate> candidates, Batch& batch);
  void select_histories(std::span<const Candidate> candidates);
  std::vector<std::int64_t> known_events(std::span<const Candidate> candidates);
  const EventColumns& history_of(std::size_t candidate) const {
    return histories_[history_of_[candidate]].events();
  }

  Task task_;  // its model and objective are moved to the learner
  SampleBuilder samples_;
  Learner learner_;
  EventMemory* memory_ = nullptr;  // null: the events of candidates are in a dataset
  std::optional<HistoryCache> cache_;
  ReplayedPasses passes_;
  Seconds seconds_;
  // Reused from batch to batch.
  SampleScratch sample_scratch_;
  std::vector<RequestHistory> histories_;  // of requests, more than a batch may need
  std::vector<std::size_t> history_of_;    // (B) in histories_: the items of a request have one
  Samples built_;
  LayoutScratch layout_scratch_;
  // Two take turns: one is made while the device still reads the other.
  struct Turn {
    explicit Turn(Device device) : batch(transfer_memory(device)), copied(device) {}
    Batch batch;
    Event copied;  // to the device
  };
  std::vector<Turn> turns_;
  Tensor batch_on_device_;  // of both: a recorded pass reads the same addresses
  std::size_t turn_ = 0;
};

// Fills the learner's parameters and tables from a checkpoint. Throws Error if they do not fit.
void load_model(const Checkpoint& checkpoint, Learner& learner);

}  // namespace hstu
