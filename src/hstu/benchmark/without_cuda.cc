// Replaces cuda/ in a build without CUDA.
#ifndef HSTU_WITH_CUDA

#include "hstu/base/error.h"
#include "hstu/benchmark/attention_benchmark.h"

namespace hstu {
namespace {

[[noreturn]] void refuse() {
  fail(
      "this hstu was built without CUDA, which the attention benchmark needs: build it where nvcc of CUDA 13 "
      "is "
      "installed");
}

}  // namespace

AttentionTime time_attention_forward(const AttentionBenchmark&) {
  refuse();
}
AttentionTime time_attention_backward(const AttentionBenchmark&) {
  refuse();
}

}  // namespace hstu

#endif
