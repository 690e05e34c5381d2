// Residual k-means: codes of vectors, level by level. Level 1 is the nearest center of the vectors, level 2
// that of what is left after it is subtracted, and so on.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "hstu/checkpoint/safetensors.h"
#include "hstu/codes/item_codes.h"
#include "hstu/tokenizer/item_vectors.h"

namespace hstu {

struct ResidualKMeansOptions {
  std::int64_t levels = 3, codes = 256;
  std::int64_t iterations = 100;  // of each level, at most
  std::uint64_t seed = 1;
};

struct TokenizedItems {
  ItemCodes codes;
  // What the vectors of the last level are chosen by: its centers (C, D), and what is left of each vector
  // before it (V, D).
  std::vector<float> last_centers, last_residuals;
  // The mean over items of the squared error of the sum of the centers, divided by that of the mean vector: 0
  // is exact, 1 no better than one code.
  double error = 0;
  // f32, by name: what later vectors get their codes by.
  std::map<std::string, Tensor> codebooks = {};
};

// The same bits for any number of threads.
TokenizedItems residual_kmeans(const ItemVectors& vectors, const ResidualKMeansOptions& options);

// Codes of other vectors by the codebooks of residual_kmeans().
TokenizedItems residual_codes(const ItemVectors& vectors, const SafetensorsFile& codebooks);

// relative error as TokenizedItems::error, of what is left of vectors (V, D).
double relative_error(const ItemVectors& vectors, const std::vector<float>& left);

}  // namespace hstu
