// Replaces cuda/ in a build without CUDA.
#ifndef HSTU_WITH_CUDA

#include "hstu/attention/attention_cuda.h"
#include "hstu/attention/beams.h"
#include "hstu/base/error.h"

namespace hstu::cuda {
namespace {

[[noreturn]] void refuse() {
  fail(
      "this hstu was built without CUDA, which attention on the GPU needs: build it where nvcc of CUDA 13 is "
      "installed");
}

}  // namespace

AttentionDevice attention_device() {
  refuse();
}
AttentionWorkspace attention_workspace(const AttentionProblem&, const AttentionRoute&) {
  refuse();
}
void attention_forward(const AttentionProblem&, const AttentionDevice&, const AttentionRows&,
                       const AttentionScratch&, CUstream_st*) {
  refuse();
}
void attention_backward(const AttentionProblem&, const AttentionDevice&, const AttentionGradients&,
                        const AttentionScratch&, CUstream_st*) {
  refuse();
}
void beam_attention(const BeamAttention&, const AttentionRows&, CUstream_st*) {
  refuse();
}
void check_attention_lists(const AttentionProblem&, CUstream_st*) {
  refuse();
}

}  // namespace hstu::cuda

#endif
