// Turns the logits of batches into samples for metrics.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "hstu/batching/batch.h"
#include "hstu/experiment/learner.h"
#include "hstu/metrics/ranking.h"
#include "hstu/model/model.h"
#include "hstu/tensor/tape.h"

namespace hstu {

// The logits of one batch and what they rank.
struct Scores {
  Tensor logits;  // (R, outputs) f32
  Examples examples;
  Event ready;  // the logits, for streams beside the one that computes them
  // (R) the place in the global batch of each example's sample (Batch::places); of one rank empty.
  std::vector<std::int64_t> places;
};
// `stream` computes the logits.
Scores scores_of(const Model& model, const Variable& logits, const Batch& batch, const Stream& stream);

// Scores a batch, which is on the learner's device, without changing the learner: the forward pass of every
// evaluation and prediction.
Scores score_batch(Learner& learner, const Batch& batch);

// (R, tasks) probabilities of the model's first tasks, row by row. Waits for `stream`, which computes the
// logits or waits for them. Throws NotFiniteError naming the first example with a logit that is NaN or
// infinite; `place` says what Examples::position counts.
std::vector<float> probabilities_of(const Model& model, const Scores& scores, const Stream& stream,
                                    std::size_t tasks, std::string_view place = "event");

// Adds the model's probabilities with the labels, grouped by user, to the samples of its first tasks, as many
// as `tasks` has. Waits and throws as probabilities_of.
void add_predictions(const Model& model, const Scores& scores, const Stream& stream,
                     std::span<RankingSamples> tasks);

}  // namespace hstu
