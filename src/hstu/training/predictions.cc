#include "hstu/training/predictions.h"

#include <cmath>

#include "hstu/base/error.h"

namespace hstu {
namespace {

template <typename T>
std::vector<T> copy_of(std::span<const T> values) {
  return {values.begin(), values.end()};
}

}  // namespace

Scores scores_of(const Variable& logits, const Batch& batch) {
  return {logits.value(), copy_of(batch.values<std::int64_t>(kUserColumn)),
          copy_of(batch.values<std::int64_t>(kPositionColumn)), copy_of(batch.values<float>(kLabelColumn))};
}

void add_predictions(const Scores& scores, const Stream& stream, RankingSamples& samples) {
  const Tensor logits = scores.logits.to_host(stream);
  for (std::size_t b = 0; b < scores.user.size(); ++b) {
    const double z = logits.data<float>()[b];
    if (!std::isfinite(z)) {
      throw NotFiniteError(
          fmt::format("the score of user {} at event {} is {}", scores.user[b], scores.position[b], z));
    }
    samples.add(static_cast<float>(1 / (1 + std::exp(-z))), scores.label[b] > 0.5f, scores.user[b]);
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
