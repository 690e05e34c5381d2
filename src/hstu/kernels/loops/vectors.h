// Vectors of the instruction set that a file is compiled for, in the compilers' portable notation.
#pragma once

#include <cstdint>
#include <utility>

namespace hstu::kernels {
namespace {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64, kPanelVectors = 4;  // 32 registers: 6 x 4 sums
#elif defined(__ARM_NEON)
constexpr int kVectorBytes = 16, kPanelVectors = 4;  // 32 registers: 6 x 4 sums
#else
constexpr int kVectorBytes = 32, kPanelVectors = 2;  // 16 registers: 6 x 2 sums
#endif

template <typename T>
constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(T));

template <typename T>
struct Vectors {
  typedef T Vector __attribute__((vector_size(kVectorBytes)));
  typedef T Unaligned __attribute__((vector_size(kVectorBytes), aligned(sizeof(T)), may_alias));
};
template <typename T>
using Vector = typename Vectors<T>::Vector;

template <typename T>
[[gnu::always_inline]] inline Vector<T> load(const T* from) {
  return *reinterpret_cast<const typename Vectors<T>::Unaligned*>(from);
}
template <typename T>
[[gnu::always_inline]] inline void store(T* to, Vector<T> value) {
  *reinterpret_cast<typename Vectors<T>::Unaligned*>(to) = value;
}

// The elements of a and b in turns: of their first halves (half = 0) or of their second ones (1).
template <int half, typename V, int... i>
[[gnu::always_inline]] inline V in_turns(V a, V b, std::integer_sequence<int, i...>) {
  constexpr int n = sizeof...(i);
  return __builtin_shufflevector(a, b, (half * n / 2 + i / 2 + i % 2 * n)...);
}

// Transposes a square of as many rows as a vector has elements: each round turns the number of an element by
// one bit.
template <typename T>
[[gnu::always_inline]] inline void transpose(Vector<T> (&rows)[kLanes<T>]) {
  constexpr auto kIndex = std::make_integer_sequence<int, kLanes<T>>();
  constexpr int kHalf = kLanes<T> / 2;
  for (int round = 1; round < kLanes<T>; round *= 2) {
    Vector<T> next[kLanes<T>];
    for (int r = 0; r < kHalf; ++r) {
      next[2 * r] = in_turns<0>(rows[r], rows[r + kHalf], kIndex);
      next[2 * r + 1] = in_turns<1>(rows[r], rows[r + kHalf], kIndex);
    }
    for (int r = 0; r < kLanes<T>; ++r) rows[r] = next[r];
  }
}

}  // namespace
}  // namespace hstu::kernels
