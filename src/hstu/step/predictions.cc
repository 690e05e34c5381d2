#include "hstu/step/predictions.h"

#include <cmath>
#include <unordered_map>

#include "hstu/base/error.h"
#include "hstu/step/launches.h"

namespace hstu {

namespace {

// An example names its sample by the sample's event.
std::vector<std::int64_t> places_of(const Examples& examples, const Batch& batch) {
  std::vector<std::int64_t> places;
  if (batch.places.empty()) return places;
  std::unordered_map<std::int64_t, std::int64_t> place_of;
  const auto positions = batch.values<std::int64_t>(kPositionColumn);
  for (std::size_t b = 0; b < batch.places.size(); ++b) place_of.emplace(positions[b], batch.places[b]);
  for (const std::int64_t position : examples.position) places.push_back(place_of.at(position));
  return places;
}

}  // namespace

Scores scores_of(const Model& model, const Variable& logits, const Batch& batch, const Stream& stream) {
  Scores scores{logits.value(), model.examples(batch), Event(stream.device()), {}};
  scores.places = places_of(scores.examples, batch);
  scores.ready.record_later(stream);
  return scores;
}

Scores score_batch(Learner& learner, const Batch& batch) {
  const BatchRows rows = look_up(learner, batch, RowAccess::read);
  learner.compute.stream.wait(rows.ready);
  Tape tape(learner.compute, false);
  Variable logits;
  with_launches_of(learner, &batch,
                   [&] { logits = learner.model->forward(tape, batch, rows.leaves, Draws()); });
  return scores_of(*learner.model, logits, batch, learner.compute.stream);
}

std::vector<float> probabilities_of(const Model& model, const Scores& scores, const Stream& stream,
                                    std::size_t tasks, std::string_view place) {
  const Examples& examples = scores.examples;
  const std::size_t rows = examples.user.size();
  std::vector<float> probabilities;
  if (rows == 0) return probabilities;
  probabilities.reserve(rows * tasks);
  const Tensor logits = scores.logits.to_host(stream);
  const std::size_t outputs = static_cast<std::size_t>(logits.size()) / rows;
  for (std::size_t r = 0; r < rows; ++r) {
    const std::span row(logits.data<float>() + r * outputs, outputs);
    for (const float z : row) {
      if (!std::isfinite(z)) {
        throw NotFiniteError(fmt::format("the score of user {} at {} {} is {}", examples.user[r], place,
                                         examples.position[r], z));
      }
    }
    for (std::size_t k = 0; k < tasks; ++k)
      probabilities.push_back(static_cast<float>(model.probability(row, k)));
  }
  return probabilities;
}

void add_predictions(const Model& model, const Scores& scores, const Stream& stream,
                     std::span<RankingSamples> tasks) {
  const Examples& examples = scores.examples;
  const std::size_t rows = examples.user.size();
  if (rows == 0) return;
  const std::size_t labels = examples.label.size() / rows;
  require(tasks.size() <= labels, "expected at most {} tasks, found {}", labels, tasks.size());
  const std::vector<float> probabilities = probabilities_of(model, scores, stream, tasks.size());
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t k = 0; k < tasks.size(); ++k)
      tasks[k].add(probabilities[r * tasks.size() + k], examples.label[r * labels + k] != 0,
                   examples.user[r]);
  }
}

}  // namespace hstu
