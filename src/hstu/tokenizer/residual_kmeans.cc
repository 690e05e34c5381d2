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

namespace {

std::string level_name(std::size_t level) {
  return fmt::format("level_{}", level + 1);
}

// The codes of each level are the nearest of its centers (C, D); `centers_of`(level, what is left of the
// vectors) gives them.
template <typename CentersOf>
TokenizedItems quantised(const ItemVectors& vectors, std::int64_t levels, std::int64_t codes_of_level,
                         const CentersOf& centers_of) {
  TokenizedItems result;
  ItemCodes& codes = result.codes;
  codes.items = vectors.items;
  codes.sizes.assign(static_cast<std::size_t>(levels), codes_of_level);
  codes.codes.resize(vectors.items.size() * codes.sizes.size());
  std::vector<float> left = vectors.values, distance(vectors.items.size());
  std::vector<std::int32_t> cluster(vectors.items.size());
  const auto width = static_cast<std::size_t>(vectors.width);
  for (std::size_t l = 0; l < codes.sizes.size(); ++l) {
    const std::vector<float> centers = centers_of(l, left);
    find_nearest(left, centers, vectors.width, cluster, distance);
    if (l + 1 == codes.sizes.size()) result.last_residuals = left;
    for (std::size_t i = 0; i < codes.items.size(); ++i) {
      const auto k = static_cast<std::size_t>(cluster[i]);
      codes.codes[i * codes.sizes.size() + l] = cluster[i];
      for (std::size_t d = 0; d < width; ++d) left[i * width + d] -= centers[k * width + d];
    }
    if (l + 1 == codes.sizes.size()) result.last_centers = centers;
    result.codebooks[level_name(l)] = Tensor::from<float>({codes_of_level, vectors.width}, centers);
  }
  result.error = relative_error(vectors, left);
  return result;
}

}  // namespace

TokenizedItems residual_kmeans(const ItemVectors& vectors, const ResidualKMeansOptions& options) {
  require(vectors.size() >= 1 && options.levels >= 1, "residual k-means: expected vectors and levels");
  return quantised(vectors, options.levels, options.codes,
                   [&](std::size_t level, const std::vector<float>& left) {
                     return kmeans(left, vectors.width,
                                   {.clusters = options.codes,
                                    .iterations = options.iterations,
                                    .key = derive_key(options.seed, fmt::format("level {}", level))})
                         .centers;
                   });
}

TokenizedItems residual_codes(const ItemVectors& vectors, const SafetensorsFile& codebooks) {
  const Shape& shape = codebooks.tensors().front().shape;
  return quantised(
      vectors, std::ssize(codebooks.tensors()), shape.front(),
      [&](std::size_t level, const std::vector<float>&) {
        const auto centers = codebooks.values<float>(level_name(level), {shape.front(), vectors.width});
        return std::vector<float>(centers.begin(), centers.end());
      });
}

}  // namespace hstu
