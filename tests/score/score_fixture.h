// Exports whose answers to requests from memory are compared with those of hstu predict.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "hstu/predict/export.h"
#include "hstu/score/request_scorer.h"
#include "predict/predict_fixture.h"
#include "support/kind_options.h"

namespace hstu::testing {

// Checks the requests, and answers them together.
inline std::vector<ScoreAnswer> answers_of(RequestScorer& scorer, const std::vector<ScoreRequest>& requests) {
  std::vector<const ScoreRequest*> all;
  for (const ScoreRequest& request : requests) {
    scorer.check(request);
    all.push_back(&request);
  }
  return scorer.answer(all);
}

class Score : public Predict {
 protected:
  // Trains for a few steps and exports to the folder "export".
  void train_and_export() {
    options_.training.max_steps = 2;
    run("run");
    export_model({.run = folder_ / "run", .output = folder_ / "export"});
  }
  RetrievalConfig& use_retrieval(SequencePreset preset) {
    RetrievalConfig& model = retrieval_of(options_);
    model.preset = preset;
    model.embedding_dim = 8;
    model.heads = 2;
    model.exclude_seen = SeenItems::none;
    options_.features.context.clear();
    options_.features.attributes.clear();
    options_.data.options.window_seconds = 0;
    options_.data.options.anchor_stride = 0;
    options_.data.options.min_history = 1;
    options_.data.options.negatives = {};
    options_.evaluation = {};
    options_.evaluation.holdout.split = LastSplit::paper;
    return model;
  }
  std::unique_ptr<RequestScorer> open(std::int64_t cache_bytes = 0, const std::string& device = "host",
                                      std::int64_t behind = 0) const {
    return std::make_unique<RequestScorer>(RequestScorerOptions{
        .model = folder_ / "export", .device = device, .cache_bytes = cache_bytes, .cache_behind = behind});
  }
  // The dataset's events of a user, the last one first.
  RequestEvents events_of(std::int64_t user) const {
    const Dataset dataset(folder_ / "dataset");
    RequestEvents events;
    events.context.resize(dataset.manifest().context.size());
    std::vector<std::int64_t> positions;
    dataset.events_of(user).each([&](std::int64_t p) { positions.insert(positions.begin(), p); });
    for (const std::int64_t p : positions) {
      events.item.push_back(dataset.item()[p]);
      events.time.push_back(dataset.time()[p]);
      events.action.push_back(dataset.action()[static_cast<std::size_t>(p)] & ~kRankableBit);
      for (std::size_t c = 0; c < events.context.size(); ++c)
        events.context[c].push_back(dataset.context(dataset.manifest().context[c])[p]);
    }
    return events;
  }
  std::int64_t id_of_user(std::int64_t user) const {
    return Dataset(folder_ / "dataset").user_ids()[static_cast<std::size_t>(user)];
  }
};

}  // namespace hstu::testing
