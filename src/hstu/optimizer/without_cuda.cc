#ifndef HSTU_WITH_CUDA
#include "hstu/base/error.h"
#include "hstu/optimizer/dense_update.h"

namespace hstu::cuda {

void update_dense(const UpdateNumbers&, std::span<const DenseUpdate>, const float*, CudaStream) {
  fail("this hstu was built without CUDA");
}

void sums_of_squares(std::span<const FloatList>, double*, CudaStream) {
  fail("this hstu was built without CUDA");
}

void judge_update(const UpdateJudgement&, CudaStream) {
  fail("this hstu was built without CUDA");
}

}  // namespace hstu::cuda
#endif
