// Stands in for cuda/ in a build without CUDA.
#ifndef HSTU_WITH_CUDA

#include "hstu/attention/attention.h"
#include "hstu/base/error.h"

namespace hstu {
namespace {

[[noreturn]] void refuse() {
  fail(
      "this hstu was built without CUDA, and attention on the GPU needs it: build where nvcc of CUDA 13 is "
      "installed");
}

}  // namespace

AttentionDevice attention_device() {
  refuse();
}
AttentionWorkspace attention_workspace(const AttentionProblem&, const AttentionRoute&) {
  refuse();
}
void attention_forward(const AttentionProblem&, const AttentionDevice&, const AttentionRows&, void*,
                       CUstream_st*) {
  refuse();
}
void attention_backward(const AttentionProblem&, const AttentionDevice&, const AttentionRows&,
                        const AttentionRows&, const AttentionRows&, const AttentionRows&, void*,
                        CUstream_st*) {
  refuse();
}

}  // namespace hstu

#endif
