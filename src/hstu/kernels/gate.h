// The gate of an HSTU layer, in two forms. Source: "Actions Speak Louder than Words", section 3 (the
// pointwise transformation).
#pragma once

#include <cstdint>

#include "hstu/base/choice.h"
#include "hstu/base/float16.h"
#include "hstu/device/stream.h"
#include "hstu/kernels/dropout.h"
#include "hstu/kernels/gradient.h"

namespace hstu::kernels {

enum class GateForm {
  concat,   // y = [drop(silu(u)), drop(o), drop(silu(u) * layer_norm(o))] with three independent masks
            // (DLRMv4)
  product,  // y = drop(silu(u) * layer_norm(o)) (NVIDIA)
};
inline constexpr Choice<GateForm> kGateForms[] = {{"concat", GateForm::concat},
                                                  {"product", GateForm::product}};
// The width of y, in widths of u.
[[gnu::always_inline]] constexpr std::int64_t gate_parts(GateForm form) {
  return form == GateForm::concat ? 3 : 1;
}

// The columns of a row where it is divided among ranks: this one has `width` of `whole`, from `first` on, of
// U, of O and of each part of y. Dropout's columns are those of the whole row.
struct GateColumns {
  std::int64_t first = 0, whole = 0;  // whole = 0: the rank has the whole row

  [[gnu::always_inline]] constexpr bool is_part() const { return whole > 0; }
  // Of part `part` of y, of which this rank has `width` columns: the place of the first in the whole row.
  [[gnu::always_inline]] constexpr std::int64_t begin(std::int64_t part, std::int64_t width) const {
    return part * (whole > 0 ? whole : width) + first;
  }
};

template <typename T>
struct GateForward {
  GateForm form = GateForm::concat;
  std::int64_t rows = 0, width = 0;  // width = H * D
  Accumulator<T> epsilon = 0;
  const T* u = nullptr;  // (rows, width)
  std::int64_t u_stride = 0;
  const T* o = nullptr;                                    // (rows, width) attention output
  const Accumulator<T>*weight = nullptr, *bias = nullptr;  // (width) of the layer norm
  T* y = nullptr;                                          // (rows, parts * width)
  // (rows) kept for the backward pass. Of a part of a row they are read: combine_moments() writes them.
  Accumulator<T>*mean = nullptr, *rstd = nullptr;
  Dropout dropout;  // of the rows of y
  GateColumns columns = {};
};

template <typename T>
struct GateBackward {
  GateForm form = GateForm::concat;
  std::int64_t rows = 0, width = 0;
  const T* u = nullptr;  // as in the forward pass, like o, weight, bias and dropout
  std::int64_t u_stride = 0;
  const T* o = nullptr;
  const Accumulator<T>*weight = nullptr, *bias = nullptr;
  const Accumulator<T>*mean = nullptr, *rstd = nullptr;
  const T* dy = nullptr;  // (rows, parts * width)
  Gradient<T> du;         // (rows, width)
  std::int64_t du_stride = 0;
  Gradient<T> d_o;                          // (rows, width)
  Gradient<Accumulator<T>> dweight, dbias;  // (width)
  Dropout dropout;
  GateColumns columns = {};
  // (rows, 2) of parts of rows: the sums over columns of g and of g n, with n the normalised o and g its
  // gradient. gate_backward_sums() writes those of this rank's columns; gate_backward() reads those of all.
  Accumulator<T>* sums = nullptr;
};

// What ranks tell each other of rows of which each has some columns.
template <typename T>
struct GateMoments {
  std::int64_t rows = 0, width = 0;
  const T* o = nullptr;               // (rows, width)
  Accumulator<T>* moments = nullptr;  // (rows, 2): the mean, and the sum of squared distances from it
};

// The statistics of whole rows from those of their parts, each of `width` columns, exactly and in the order
// of ranks: Chan, Golub and LeVeque (1983), "Algorithms for computing the sample variance". S: of sums.
template <typename S>
struct CombineMoments {
  std::int64_t ranks = 0, rows = 0, width = 0;
  S epsilon = 0;
  const S* moments = nullptr;          // (ranks, rows, 2)
  S *mean = nullptr, *rstd = nullptr;  // (rows)
};

template <typename T>
void gate(const GateForward<T>& p, HostStream);
template <typename T>
void gate(const GateForward<T>& p, CudaStream);
template <typename T>
void gate_backward(const GateBackward<T>& p, HostStream);
template <typename T>
void gate_backward(const GateBackward<T>& p, CudaStream);

// Of parts of rows.
template <typename T>
void gate_moments(const GateMoments<T>& p, HostStream);
template <typename T>
void gate_moments(const GateMoments<T>& p, CudaStream);
template <typename S>
void combine_moments(const CombineMoments<S>& p, HostStream);
template <typename S>
void combine_moments(const CombineMoments<S>& p, CudaStream);
template <typename T>
void gate_backward_sums(const GateBackward<T>& p, HostStream);
template <typename T>
void gate_backward_sums(const GateBackward<T>& p, CudaStream);

}  // namespace hstu::kernels
