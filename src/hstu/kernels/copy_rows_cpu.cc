#include <algorithm>

#include "hstu/kernels/copy_rows.h"

namespace hstu::kernels {

template <typename T>
void copy_rows(const CopyRows<T>& p, HostStream) {
  for (std::int64_t i = 0; i < p.rows; ++i)
    std::copy_n(p.x + p.from[i] * p.x_stride, p.width, p.y + p.to[i] * p.width);
}

template void copy_rows(const CopyRows<float>&, HostStream);
template void copy_rows(const CopyRows<double>&, HostStream);
template void copy_rows(const CopyRows<std::int64_t>&, HostStream);

}  // namespace hstu::kernels
