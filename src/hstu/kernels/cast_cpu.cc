#include <algorithm>

#include "hstu/base/threads.h"
#include "hstu/kernels/cast.h"

namespace hstu::kernels {

template <typename T>
void cast(const Cast<T>& p, HostStream) {
  parallel_blocks(p.size, std::int64_t{1} << 14, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) p.y[i] = static_cast<T>(p.x[i]);
  });
}

template <typename T>
void fill(const Fill<T>& p, HostStream) {
  std::fill(p.y, p.y + p.size, static_cast<T>(p.value));
}

template void fill(const Fill<float>&, HostStream);
template void fill(const Fill<double>&, HostStream);
template void cast(const Cast<float>&, HostStream);
template void cast(const Cast<double>&, HostStream);

}  // namespace hstu::kernels
