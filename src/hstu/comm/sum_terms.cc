#include "hstu/comm/sum_terms.h"

#include <type_traits>

#include "hstu/base/float16.h"

namespace hstu {

template <typename T>
void sum_terms(const T* terms, int count, std::int64_t n, const T* last, T* sums, const Stream& stream) {
  if (!stream.device().is_host()) return cuda::sum_terms(terms, count, n, last, sums, stream.cuda());
  using Sum = std::conditional_t<std::is_integral_v<T>, T, Accumulator<T>>;
  for (std::int64_t i = 0; i < n; ++i) {
    Sum sum = 0;
    for (int r = 0; r < count; ++r) sum += static_cast<Sum>(terms[r * n + i]);
    if (last != nullptr) sum += static_cast<Sum>(last[i]);
    sums[i] = static_cast<T>(sum);
  }
}

template void sum_terms(const float*, int, std::int64_t, const float*, float*, const Stream&);
template void sum_terms(const double*, int, std::int64_t, const double*, double*, const Stream&);
template void sum_terms(const std::int32_t*, int, std::int64_t, const std::int32_t*, std::int32_t*,
                        const Stream&);
template void sum_terms(const BFloat16*, int, std::int64_t, const BFloat16*, BFloat16*, const Stream&);

}  // namespace hstu
