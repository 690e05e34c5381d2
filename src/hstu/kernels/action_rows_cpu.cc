#include <algorithm>

#include "hstu/kernels/action_rows.h"

namespace hstu::kernels {

template <typename T>
void action_rows(const ActionRowsForward<T>& p, HostStream) {
  T* y = p.y;
  for (std::int64_t i = 0; i < p.actions; ++i) {
    for (std::int64_t b = 0; b < p.bits; ++b, y += p.width) {
      if ((p.action[i] & p.bit[b]) != 0)
        std::copy_n(p.table + b * p.width, p.width, y);
      else
        std::fill_n(y, p.width, T(0));
    }
  }
  std::copy_n(p.target, p.bits * p.width, y);
}

template <typename T>
void action_rows_backward(const ActionRowsBackward<T>& p, HostStream) {
  const std::int64_t row = p.bits * p.width;
  if (p.dtable.to != nullptr) {
    T* const out = p.dtable.to;
    if (!p.dtable.accumulate) std::fill_n(out, row, T(0));
    for (std::int64_t i = 0; i < p.actions; ++i) {
      for (std::int64_t j = 0; j < row; ++j) {
        if ((p.action[i] & p.bit[j / p.width]) != 0) out[j] += p.dy[i * row + j];
      }
    }
  }
  if (p.dtarget.to != nullptr) {
    const T* const last = p.dy + p.actions * row;
    if (!p.dtarget.accumulate) std::fill_n(p.dtarget.to, row, T(0));
    for (std::int64_t j = 0; j < row; ++j) p.dtarget.to[j] += last[j];
  }
}

template void action_rows(const ActionRowsForward<float>&, HostStream);
template void action_rows(const ActionRowsForward<double>&, HostStream);
template void action_rows_backward(const ActionRowsBackward<float>&, HostStream);
template void action_rows_backward(const ActionRowsBackward<double>&, HostStream);

}  // namespace hstu::kernels
