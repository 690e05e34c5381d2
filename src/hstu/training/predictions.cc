#include "hstu/training/predictions.h"

#include <cmath>

#include "hstu/base/error.h"

namespace hstu {

void add_predictions(const Tensor& logits, const Batch& batch, RankingSamples& samples) {
  for (std::size_t b = 0; b < static_cast<std::size_t>(batch.samples); ++b) {
    const double z = logits.data<float>()[b];
    if (!std::isfinite(z)) {
      throw NotFiniteError(
          fmt::format("the score of user {} at event {} is {}", batch.user[b], batch.position[b], z));
    }
    samples.add(static_cast<float>(1 / (1 + std::exp(-z))), batch.label[b] > 0.5f, batch.user[b]);
  }
}

}  // namespace hstu
