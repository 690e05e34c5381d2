// The innermost loops of the CPU kernels, compiled once for each instruction set. A kernel divides its work
// into blocks of rows and calls the loops through a table of functions, which is chosen when the program
// starts.
//
// Every loop gives the same bits in every instruction set: an element is computed by the same operations,
// sums have an order of their own (16 sums side by side in rows, ascending depth in products) and not that of
// the vectors.
#pragma once

#include <cstdint>

#include "hstu/base/choice.h"
#include "hstu/kernels/dropout.h"
#include "hstu/kernels/gate.h"
#include "hstu/kernels/layer_norm.h"

namespace hstu::kernels {

enum class InstructionSet {
  baseline,  // what all of hstu is compiled for: x86-64-v3 (AVX2 and FMA), or NEON on 64-bit Arm
  avx512,    // x86-64-v4
};
inline constexpr Choice<InstructionSet> kInstructionSets[] = {{"baseline", InstructionSet::baseline},
                                                              {"avx512", InstructionSet::avx512}};

// op(B) (k, n) times alpha, in panels of adjacent columns: what multiply reads. Column j and the columns to
// its right begin at packed + j * k if j is a multiple of kPackedColumns. The last panel is padded with
// zeros.
constexpr std::int64_t kPackedColumns = 64;
template <typename T>
struct PackPanels {
  std::int64_t k = 0, n = 0;
  const T* b = nullptr;
  std::int64_t stride = 0;  // elements from one stored row of B to the next
  bool transposed = false;  // B is stored as (n, k)
  T alpha = 1;
  T* packed = nullptr;  // (packed_size(k, n)), aligned to 64 bytes
};
constexpr std::int64_t packed_size(std::int64_t k, std::int64_t n) {
  return k * ((n + 15) / 16 * 16);
}

// C (m, n) = start + op(A) (m, k) B (k, n) with a packed B. Each element is start + a0 b0 + a1 b1 + ... in
// this order.
template <typename T>
struct PanelProduct {
  std::int64_t m = 0, n = 0, k = 0;
  const T* a = nullptr;
  std::int64_t a_stride = 0;
  bool a_transposed = false;  // A is stored as (k, m)
  const T* b = nullptr;       // packed
  std::int64_t packed_rows = 0,
               packed_columns = 0;  // of the packed matrix, from column 0 of b on; at least k and n
  std::int64_t first_row = 0;       // of the packed matrix: where the k rows begin
  const T* start = nullptr;         // (m, n), may be c; nullptr: 0
  std::int64_t start_stride = 0;    // 0: one row for all
  T* c = nullptr;
  std::int64_t c_stride = 0;
};

// Rows [begin, end) of an operation: the parameters are the operation's own. `sums` (2 * width) receives the
// gradients of the norm's weight, then of its bias; `scratch` may be overwritten.
template <typename T>
struct Loops {
  int vector_bytes;
  void (*pack)(const PackPanels<T>&);
  void (*multiply)(const PanelProduct<T>&);
  void (*layer_norm)(const LayerNormForward<T>&, std::int64_t begin, std::int64_t end);
  void (*swish_layer_norm)(const LayerNormForward<T>&, std::int64_t begin, std::int64_t end);
  // scratch (4 * width)
  void (*layer_norm_backward)(const LayerNormBackward<T>&, std::int64_t begin, std::int64_t end, T* sums,
                              T* scratch);
  void (*swish_layer_norm_backward)(const LayerNormBackward<T>&, std::int64_t begin, std::int64_t end,
                                    T* sums, T* scratch);
  // scratch (parts * width) and (parts * width + 4 * width)
  void (*gate)(const GateForward<T>&, std::int64_t begin, std::int64_t end, T* scratch);
  void (*gate_backward)(const GateBackward<T>&, std::int64_t begin, std::int64_t end, T* sums, T* scratch);
  void (*gate_moments)(const GateMoments<T>&, std::int64_t begin, std::int64_t end);
  // scratch as gate_backward
  void (*gate_sums)(const GateBackward<T>&, std::int64_t begin, std::int64_t end, T* scratch);
  // dropout.h
  void (*dropout_factors)(const Dropout&, std::int64_t row, std::int64_t width, T* factors);
  // x becomes scale * silu(alpha x); in the second, dy becomes the gradient of x.
  void (*scaled_silu)(T* x, std::int64_t count, T alpha, T scale);
  void (*scaled_silu_backward)(T* x, T* dy, std::int64_t count, T alpha, T scale);
  // y = silu(x); dy becomes the gradient of x.
  void (*silu)(const T* x, T* y, std::int64_t count);
  void (*silu_backward)(const T* x, T* dy, std::int64_t count);
  // sums (n) += the rows of x (rows, n)
  void (*column_sums)(const T* x, std::int64_t rows, std::int64_t n, T* sums);
  // The largest of x (count); count >= 1. A NaN may be passed over.
  T (*largest)(const T* x, std::int64_t count);
  // x becomes factor * e^(x - shift); returns the sum of x.
  T (*exponentials)(T* x, std::int64_t count, T shift, T factor);
};

// Whether the program has the loops and processor and system can run them.
bool is_usable(InstructionSet set);
// The loops of a usable set.
template <typename T>
const Loops<T>& loops_of(InstructionSet set);

// The set in use: from the start the last usable one.
InstructionSet instruction_set();
// For tests and measurements, outside parallel regions. Throws Error if the set is not usable.
void use_instruction_set(InstructionSet set);

template <typename T>
const Loops<T>& loops() {
  return loops_of<T>(instruction_set());
}

}  // namespace hstu::kernels
