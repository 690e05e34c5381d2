// RQ-VAE (Lee et al., "Autoregressive Image Generation using Residual Quantization", 2022; as TIGER uses it):
// an encoder, residual quantisation of its output, and a decoder, trained together.
#pragma once

#include <cstdint>
#include <vector>

#include "hstu/tokenizer/residual_kmeans.h"

namespace hstu {

struct RqVaeOptions {
  std::vector<std::int64_t> hidden = {512, 256, 128};  // widths between a vector and its code vector
  std::int64_t code_width = 32;                        // d
  std::int64_t epochs = 200, batch = 1024;
  double learning_rate = 1e-3, weight_decay = 1e-4;
  double commitment = 0.25;
};

// The loss of a batch is the mean over vectors of |x - decoded|^2 / D, plus quantisation_loss() (rq_ops.h)
// with the same mean over vectors. Codebooks begin as the centers of residual k-means of the first outputs of
// the encoder; a code that no vector of an epoch has begins again at what is left of one of them. Results do
// not depend on the number of threads.
TokenizedItems rq_vae(const ItemVectors& vectors, const ResidualKMeansOptions& sizes,
                      const RqVaeOptions& options);

// Codes of other vectors by the codebooks of rq_vae(), of the same sizes.
TokenizedItems rq_vae_codes(const ItemVectors& vectors, const ResidualKMeansOptions& sizes,
                            const RqVaeOptions& options, const SafetensorsFile& codebooks);

}  // namespace hstu
