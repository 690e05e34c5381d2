// Takes the place of cuda/ in a build without CUDA.
#ifndef HSTU_WITH_CUDA

#include "hstu/base/error.h"
#include "hstu/embedding/changed_rows.h"

namespace hstu::cuda {
namespace {

[[noreturn]] void refuse_changed_rows() {
  fail("this hstu was built without CUDA");
}

}  // namespace

void find_changed(std::span<const ChangedRows>, const Stream&) {
  refuse_changed_rows();
}

}  // namespace hstu::cuda

#endif
