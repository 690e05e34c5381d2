#include "hstu/training/predictions.h"

#include <cmath>

#include "hstu/base/error.h"

namespace hstu {

Scores scores_of(const Model& model, const Variable& logits, const Batch& batch) {
  return {logits.value(), model.examples(batch)};
}

void add_predictions(const Model& model, const Scores& scores, const Stream& stream,
                     std::span<RankingSamples> tasks) {
  const Examples& examples = scores.examples;
  const std::size_t rows = examples.user.size();
  if (rows == 0) return;
  const Tensor logits = scores.logits.to_host(stream);
  const std::size_t outputs = static_cast<std::size_t>(logits.size()) / rows;
  const std::size_t labels = examples.label.size() / rows;
  require(tasks.size() <= labels, "expected at most {} tasks, found {}", labels, tasks.size());
  for (std::size_t r = 0; r < rows; ++r) {
    const std::span row(logits.data<float>() + r * outputs, outputs);
    for (const float z : row) {
      if (!std::isfinite(z)) {
        throw NotFiniteError(
            fmt::format("the score of user {} at event {} is {}", examples.user[r], examples.position[r], z));
      }
    }
    for (std::size_t k = 0; k < tasks.size(); ++k) {
      tasks[k].add(static_cast<float>(model.probability(row, k)), examples.label[r * labels + k] != 0,
                   examples.user[r]);
    }
  }
}

RankingSamples gather(const RankingSamples& samples, Communicator& comm) {
  if (comm.size() == 1) return samples;
  const std::vector<float> probabilities = comm.all_gather(samples.probabilities());
  const std::vector<std::uint8_t> labels = comm.all_gather(samples.labels());
  const std::vector<std::int64_t> users = comm.all_gather(samples.groups());
  RankingSamples all;
  for (std::size_t i = 0; i < probabilities.size(); ++i) all.add(probabilities[i], labels[i] != 0, users[i]);
  return all;
}

}  // namespace hstu
