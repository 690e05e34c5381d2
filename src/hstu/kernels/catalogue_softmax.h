// The softmax of positions over items that come in blocks: its sums in a forward pass, and its gradients, for
// which the logits of a block are computed a second time. Alphabet: R positions, n items of a block, E width.
// The logit of a position and an item is scale * (vector . row), plus the item's bias unless the item is the
// position's own.
#pragma once

#include <cstdint>

#include "hstu/base/float16.h"
#include "hstu/device/stream.h"

namespace hstu::kernels {

// numbers[i] = the number of wanted[i] in `ids`; -1 where they do not have it.
struct FindIds {
  std::int64_t wanted_count = 0, size = 0;
  const std::int64_t* wanted = nullptr;  // (wanted_count)
  const std::int64_t* ids = nullptr;     // (size) ascending
  std::int64_t* numbers = nullptr;       // (wanted_count)
};
void find_ids(const FindIds& p, HostStream);
void find_ids(const FindIds& p, CudaStream);

// A block of a catalogue that meets all positions.
template <typename T>
struct CatalogueBlock {
  std::int64_t positions = 0, items = 0, width = 0;
  std::int64_t first = 0;  // number of the block's first item in the catalogue
  Accumulator<T> scale = 1;
  const T* vectors = nullptr;            // (R, E)
  const T* rows = nullptr;               // (n, E)
  const Accumulator<T>* bias = nullptr;  // (n); null: 0
  const std::int64_t* targets =
      nullptr;  // (R) number of the position's item; outside of the block: no matter
};

// What is known of a position after some blocks.
template <typename T>
struct SoftmaxPart {
  T sum;       // of e^(logit - largest) over the items
  T positive;  // the logit of the position's item; 0 before it has come
  T found;     // 1: it has come; else 0
};

// Before the first block.
template <typename T>
struct StartSoftmax {
  std::int64_t positions = 0;
  T* largest = nullptr;             // (R) becomes -infinity
  SoftmaxPart<T>* parts = nullptr;  // (R) becomes 0
};
template <typename T>
void start_softmax(const StartSoftmax<T>& p, HostStream);
void start_softmax(const StartSoftmax<float>& p, CudaStream);

template <typename T>
struct SoftmaxSums {
  CatalogueBlock<T> block;
  Accumulator<T>* largest = nullptr;             // (R) of the logits so far
  SoftmaxPart<Accumulator<T>>* parts = nullptr;  // (R)
};

// Takes one block more.
template <typename T>
void add_softmax_block(const SoftmaxSums<T>& p, HostStream);
template <typename T>
void add_softmax_block(const SoftmaxSums<T>& p, CudaStream);

// With P = softmax of all logits and Y = 1 at the position's item: G = factor * weight * scale * (P - Y) of a
// block, of which the gradients are dvectors += G rows and drows = G^T vectors.
template <typename T>
struct SoftmaxGradients {
  CatalogueBlock<T> block;
  const Accumulator<T>* log_sum = nullptr;  // (R) log(sum of e^logit over the whole catalogue)
  const Accumulator<T>* dloss = nullptr;    // (1)
  double factor = 1;                        // times dloss
  const float* weights = nullptr;           // (R) further factors; null: 1
  Accumulator<T>* dvectors = nullptr;       // (R, E); nullptr: not needed
  Accumulator<T>* drows = nullptr;          // (n, E); nullptr: not needed
};
template <typename T>
void softmax_block_gradients(const SoftmaxGradients<T>& p, HostStream);
template <typename T>
void softmax_block_gradients(const SoftmaxGradients<T>& p, CudaStream);

// Of several ranks, each with items of its own: the parts of this rank relative to the largest logit of all.
template <typename T>
struct SoftmaxRescale {
  std::int64_t positions = 0;
  int ranks = 1, rank = 0;
  const T* largest_of_ranks = nullptr;  // (ranks, R)
  T* largest = nullptr;                 // (R) of all ranks
  SoftmaxPart<T>* parts = nullptr;      // (R)
};
template <typename T>
void rescale_softmax(const SoftmaxRescale<T>& p, HostStream);
void rescale_softmax(const SoftmaxRescale<float>& p, CudaStream);

// log_sum = largest + log(sum); loss = factor * the sum over positions of weight * (log_sum - positive), in
// double and in an order that is the same every time. NaN for a position whose item has not come.
template <typename T>
struct SoftmaxLoss {
  std::int64_t positions = 0;
  double factor = 1;
  const T* largest = nullptr;             // (R)
  const SoftmaxPart<T>* parts = nullptr;  // (R)
  const float* weights = nullptr;         // (R); null: 1
  T* log_sum = nullptr;                   // (R)
  T* loss = nullptr;                      // (1)
};
template <typename T>
void softmax_loss(const SoftmaxLoss<T>& p, HostStream);
void softmax_loss(const SoftmaxLoss<float>& p, CudaStream);

}  // namespace hstu::kernels
