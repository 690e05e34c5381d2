// The input rows of an action encoder: for every distinct action the embeddings of its bits; the last row is
// for candidates, in place of their own action. Source: DLRMv4's action encoder.
#pragma once

#include <cstdint>

#include "hstu/base/float16.h"
#include "hstu/device/stream.h"
#include "hstu/kernels/gradient.h"

namespace hstu::kernels {

template <typename T>
struct ActionRowsForward {
  std::int64_t actions = 0, bits = 0, width = 0;  // n, b, A
  const std::uint8_t* action = nullptr;           // (n) masks
  const std::uint8_t* bit = nullptr;              // (b) masks of one bit each
  const T *table = nullptr, *target = nullptr;    // (b, A), (1, b * A)
  T* y = nullptr;                                 // (n + 1, b * A)
};

template <typename T>
struct ActionRowsBackward {
  std::int64_t actions = 0, bits = 0, width = 0;
  const std::uint8_t *action = nullptr, *bit = nullptr;
  const T* dy = nullptr;                     // (n + 1, b * A)
  Gradient<Accumulator<T>> dtable, dtarget;  // (b, A), (1, b * A)
};

// y[i], columns of bit j: table[j] if action i has the bit, otherwise 0; y[n] = target.
template <typename T>
void action_rows(const ActionRowsForward<T>& p, HostStream);
template <typename T>
void action_rows(const ActionRowsForward<T>& p, CudaStream);
template <typename T>
void action_rows_backward(const ActionRowsBackward<T>& p, HostStream);
template <typename T>
void action_rows_backward(const ActionRowsBackward<T>& p, CudaStream);

}  // namespace hstu::kernels
