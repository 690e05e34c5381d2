#include "hstu/kernels/shift.h"

namespace hstu::kernels {

template <typename T>
void shift(const Shift<T>& p, HostStream) {
  for (std::int64_t i = 0; i < p.size; ++i) p.y[i] = p.x[i] + p.by;
}

template void shift(const Shift<std::int32_t>&, HostStream);
template void shift(const Shift<std::int64_t>&, HostStream);

}  // namespace hstu::kernels
