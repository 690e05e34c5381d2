// Takes the place of cuda/ in a build without CUDA.
#ifndef HSTU_WITH_CUDA

#include "hstu/base/error.h"
#include "hstu/base/float16.h"
#include "hstu/comm/sum_terms.h"

namespace hstu::cuda {

template <typename T>
void sum_terms(const T*, int, std::int64_t, const T*, T*, CUstream_st*) {
  fail("this hstu was built without CUDA");
}

template void sum_terms(const float*, int, std::int64_t, const float*, float*, CUstream_st*);
template void sum_terms(const double*, int, std::int64_t, const double*, double*, CUstream_st*);
template void sum_terms(const std::int32_t*, int, std::int64_t, const std::int32_t*, std::int32_t*,
                        CUstream_st*);
template void sum_terms(const BFloat16*, int, std::int64_t, const BFloat16*, BFloat16*, CUstream_st*);

}  // namespace hstu::cuda

#endif
