#include "hstu/kernels/dropout.h"
#include "hstu/kernels/loops.h"

namespace hstu::kernels {

template <typename T>
void dropout_factors(const Dropout& dropout, std::int64_t row, std::int64_t width, T* factors) {
  loops<T>().dropout_factors(dropout, row, width, factors);
}

template void dropout_factors(const Dropout&, std::int64_t, std::int64_t, float*);
template void dropout_factors(const Dropout&, std::int64_t, std::int64_t, double*);

}  // namespace hstu::kernels
