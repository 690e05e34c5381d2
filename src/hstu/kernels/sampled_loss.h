// Losses of positions that have a positive and some negatives each. Alphabet: R positions, C columns (the
// positive, then negatives), I rows, E width.
#pragma once

#include <cstdint>

#include "hstu/base/float16.h"
#include "hstu/device/stream.h"
#include "hstu/kernels/gradient.h"

namespace hstu::kernels {

// The logit of what is no negative: of a row that is the position's positive, and of none (-1).
constexpr double kMaskedLogit = -5e4;

// logits[r, c] = scale * vectors[r] . rows[index[r, c]], or kMaskedLogit.
template <typename T>
struct SampledLogits {
  std::int64_t positions = 0, columns = 0, rows_count = 0, width = 0;
  Accumulator<T> scale = 1;
  const T* vectors = nullptr;           // (R, E)
  const T* rows = nullptr;              // (I, E)
  const std::int32_t* index = nullptr;  // (R, C); in column 0 a row
  T* logits = nullptr;                  // (R, C)
};
template <typename T>
void sampled_logits(const SampledLogits<T>& p, HostStream);
template <typename T>
void sampled_logits(const SampledLogits<T>& p, CudaStream);

// Masked logits give no gradient. Sums are in the order of positions.
template <typename T>
struct SampledLogitsBackward {
  SampledLogits<T> forward;    // without logits
  const T* dlogits = nullptr;  // (R, C)
  Gradient<T> dvectors, drows;
};
template <typename T>
void sampled_logits_backward(const SampledLogitsBackward<T>& p, HostStream);
template <typename T>
void sampled_logits_backward(const SampledLogitsBackward<T>& p, CudaStream);

enum class SampledLossForm {
  softmax,  // -log softmax(logits[r])[0]
  gbce,     // (beta softplus(-logits[r, 0]) + sum over the negatives of softplus(logits[r, c])) / C
};

// factor * the sum over positions of each one's weight times its loss. Sums over positions are in double and
// in an order that is the same every time.
template <typename T>
struct SampledLoss {
  SampledLossForm form = SampledLossForm::softmax;
  std::int64_t positions = 0, columns = 0;
  double factor = 1, beta = 1;
  const T* logits = nullptr;       // (R, C)
  const float* weights = nullptr;  // (R); null: 1
  Accumulator<T>* loss = nullptr;  // (1)
};
template <typename T>
void sampled_loss(const SampledLoss<T>& p, HostStream);
template <typename T>
void sampled_loss(const SampledLoss<T>& p, CudaStream);

template <typename T>
struct SampledLossBackward {
  SampledLoss<T> forward;                 // without a loss
  const Accumulator<T>* dloss = nullptr;  // (1)
  Gradient<T> dlogits;                    // (R, C)
};
template <typename T>
void sampled_loss_backward(const SampledLossBackward<T>& p, HostStream);
template <typename T>
void sampled_loss_backward(const SampledLossBackward<T>& p, CudaStream);

}  // namespace hstu::kernels
