#include "hstu/attention/plain/launch.cuh"
#include "hstu/attention/plain/plain.h"

namespace hstu::cuda {

void plain_forward(const AttentionProblem& p, const AttentionRows& o, const Bias* bias, cudaStream_t stream) {
  if (p.query_rows() == 0) return;
  constexpr PlainRole kRole = PlainRole::output;
  const PlainRows rows{.own = {p.q, {}}, .other = {p.k, p.v}, .sums = {{}, o}, .accumulate = false};
  with_plain_form(p, [&]<typename T, int kD>() {
    launch_plain<kRole, kD, T>("plain attention forward", p, rows, bias, false, stream);
  });
}

}  // namespace hstu::cuda
