// Takes the place of cuda/ in a build without CUDA.
#ifndef HSTU_WITH_CUDA

#include "hstu/base/error.h"
#include "hstu/comm/sum_terms.h"

namespace hstu::cuda {

void sum_terms(const float*, int, std::int64_t, float*, CUstream_st*) {
  fail("this hstu was built without CUDA");
}

}  // namespace hstu::cuda

#endif
