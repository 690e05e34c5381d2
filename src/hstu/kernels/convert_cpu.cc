#include "hstu/kernels/convert.h"

namespace hstu::kernels {

template <typename From, typename To>
void convert(const Convert<From, To>& p, HostStream) {
  if (p.y.to == nullptr) return;
  for (std::int64_t i = 0; i < p.size; ++i) {
    const auto x = static_cast<float>(p.x[i]);
    p.y.to[i] = static_cast<To>(p.y.accumulate ? static_cast<float>(p.y.to[i]) + x : x);
  }
}

template void convert(const Convert<float, BFloat16>&, HostStream);
template void convert(const Convert<BFloat16, float>&, HostStream);

}  // namespace hstu::kernels
