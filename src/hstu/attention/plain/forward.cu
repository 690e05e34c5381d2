#include "hstu/attention/plain/launch.cuh"
#include "hstu/attention/plain/plain.h"

namespace hstu::cuda {

void plain_forward(const AttentionProblem& p, const AttentionRows& o, cudaStream_t stream) {
  if (p.query_rows() == 0) return;
  constexpr PlainRole kRole = PlainRole::output;
  const PlainRows rows{.own = {p.q, {}}, .other = {p.k, p.v}, .sums = {{}, o}, .accumulate = false};
  with_plain_form(p, [&]<typename T, int kD>() {
    launch("plain attention forward", plain_kernel<kRole, kD, T>, plain_blocks<kRole, kD>(p), kPlainThreads,
           stream, plain_arguments<T>(p, rows));
  });
}

}  // namespace hstu::cuda
