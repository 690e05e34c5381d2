// A whole MLP of few rows on a GPU, in one kernel: linear, swish layer norm, linear, layer norm, sum. Its
// form for the host is those operations (ops/mlp.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "hstu/device/dry_memory_pool.h"
#include "hstu/device/stream.h"
#include "hstu/kernels/gradient.h"

namespace hstu::kernels {

struct MlpShape {
  std::int64_t rows = 0, in = 0, hidden = 0, out = 0;
  bool is_normalised = true;  // has the last norm
};

// The places of the parameters in lists of them.
enum MlpParameter : std::size_t {
  kMlpWeight1,      // (in, hidden)
  kMlpBias1,        // (hidden)
  kMlpSwishWeight,  // (hidden)
  kMlpSwishBias,    // (hidden)
  kMlpWeight2,      // (hidden, out)
  kMlpBias2,        // (out)
  kMlpNormWeight,   // (out), like the last one null without the last norm
  kMlpNormBias,     // (out)
  kMlpParameters,
};

struct MlpForward {
  MlpShape shape;
  float epsilon = 0;
  std::array<const float*, kMlpParameters> parameters{};
  const float* x = nullptr;       // (rows, in)
  const float* addend = nullptr;  // (rows, out); null: none
  float* y = nullptr;             // (rows, out)
};

// Computes the forward pass again, so that nothing but x is kept for it.
struct MlpBackward {
  MlpShape shape;
  float epsilon = 0;
  std::array<const float*, kMlpParameters> parameters{};
  const float *x = nullptr, *dy = nullptr;  // (rows, in), (rows, out)
  Gradient<float> dx;                       // (rows, in)
  std::array<Gradient<float>, kMlpParameters> dparameters{};
};

// Whether the kernels take an MLP of this shape: at most 4,096 rows, and weights that fit with eight rows
// into 99 KiB, a block's shared memory.
bool is_small_mlp(const MlpShape& shape);

void mlp(const MlpForward& p, CudaStream);
void mlp(const MlpForward& p, DryStream);
void mlp_backward(const MlpBackward& p, CudaStream);
void mlp_backward(const MlpBackward& p, DryStream);

}  // namespace hstu::kernels
