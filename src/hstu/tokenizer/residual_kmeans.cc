#include "hstu/tokenizer/residual_kmeans.h"

#include <utility>

#include "hstu/base/error.h"
#include "hstu/base/random.h"
#include "hstu/tokenizer/kmeans.h"

namespace hstu {

double relative_error(const ItemVectors& vectors, const std::vector<float>& left) {
  const auto width = static_cast<std::size_t>(vectors.width);
  std::vector<double> mean(width, 0);
  for (std::size_t i = 0; i < vectors.values.size(); ++i) mean[i % width] += vectors.values[i];
  for (double& m : mean) m /= static_cast<double>(vectors.size());
  double error = 0, spread = 0;
  for (std::size_t i = 0; i < vectors.values.size(); ++i) {
    const double from_mean = vectors.values[i] - mean[i % width];
    error += static_cast<double>(left[i]) * left[i], spread += from_mean * from_mean;
  }
  return spread > 0 ? error / spread : 0;
}

TokenizedItems residual_kmeans(const ItemVectors& vectors, const ResidualKMeansOptions& options) {
  require(vectors.size() >= 1 && options.levels >= 1, "residual k-means: expected vectors and levels");
  TokenizedItems result;
  ItemCodes& codes = result.codes;
  codes.items = vectors.items;
  codes.sizes.assign(static_cast<std::size_t>(options.levels), options.codes);
  codes.codes.resize(vectors.items.size() * codes.sizes.size());
  std::vector<float> left = vectors.values;
  const auto width = static_cast<std::size_t>(vectors.width);
  for (std::size_t l = 0; l < codes.sizes.size(); ++l) {
    KMeansResult level = kmeans(left, vectors.width,
                                {.clusters = options.codes,
                                 .iterations = options.iterations,
                                 .key = derive_key(options.seed, fmt::format("level {}", l))});
    if (l + 1 == codes.sizes.size()) result.last_residuals = left;
    for (std::size_t i = 0; i < codes.items.size(); ++i) {
      const auto k = static_cast<std::size_t>(level.cluster[i]);
      codes.codes[i * codes.sizes.size() + l] = level.cluster[i];
      for (std::size_t d = 0; d < width; ++d) left[i * width + d] -= level.centers[k * width + d];
    }
    if (l + 1 == codes.sizes.size()) result.last_centers = std::move(level.centers);
  }
  result.error = relative_error(vectors, left);
  return result;
}

}  // namespace hstu
