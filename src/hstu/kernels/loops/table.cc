// The loops of one instruction set, HSTU_LOOPS: CMake compiles this file once for each.
//
// Nothing here may define a symbol that another file could define too. The linker keeps one copy of an inline
// function for the whole program; were it the copy that uses AVX-512, older processors would die of it far
// away from here. So everything is in unnamed namespaces or always inlined, no function of the standard
// library is called, and a test looks for weak symbols in the object file.
#include "hstu/kernels/loops/dropout_rows.h"
#include "hstu/kernels/loops/exp_rows.h"
#include "hstu/kernels/loops/gate_rows.h"
#include "hstu/kernels/loops/norm_rows.h"
#include "hstu/kernels/loops/products.h"
#include "hstu/kernels/loops/silu_rows.h"

namespace hstu::kernels::HSTU_LOOPS {

extern const Loops<float> float_loops;
extern const Loops<double> double_loops;

namespace {
template <typename T>
consteval Loops<T> table() {
  return {.vector_bytes = kVectorBytes,
          .pack = pack<T>,
          .multiply = multiply<T>,
          .layer_norm = layer_norm_rows<T>,
          .swish_layer_norm = swish_layer_norm_rows<T>,
          .layer_norm_backward = layer_norm_rows_backward<T>,
          .swish_layer_norm_backward = swish_layer_norm_rows_backward<T>,
          .gate = gate_rows<T>,
          .gate_backward = gate_rows_backward<T>,
          .gate_moments = gate_moments_rows<T>,
          .gate_sums = gate_rows_sums<T>,
          .dropout_factors = row_factors<T>,
          .scaled_silu = scaled_silu<T>,
          .scaled_silu_backward = scaled_silu_backward<T>,
          .silu = silu_row<T>,
          .silu_backward = silu_row_backward<T>,
          .column_sums = add_rows<T>,
          .largest = largest<T>,
          .exponentials = exponentials<T>};
}
}  // namespace

// Constants: nothing of this file runs before the table is chosen.
constinit const Loops<float> float_loops = table<float>();
constinit const Loops<double> double_loops = table<double>();

}  // namespace hstu::kernels::HSTU_LOOPS
