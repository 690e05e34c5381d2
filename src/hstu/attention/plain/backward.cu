#include "hstu/attention/plain/launch.cuh"
#include "hstu/attention/plain/plain.h"

namespace hstu::cuda {

void plain_backward(const AttentionProblem& p, const AttentionGradients& g, const Bias* bias,
                    cudaStream_t stream) {
  constexpr const char* kWhat = "plain attention backward";
  constexpr PlainRole kKeys = PlainRole::key_gradient, kQueries = PlainRole::query_gradient;
  const PlainRows of_keys{
      .own = {p.k, p.v}, .other = {p.q, g.d_o}, .sums = {g.dk, g.dv}, .accumulate = g.accumulate_dkv};
  const PlainRows of_queries{
      .own = {p.q, g.d_o}, .other = {p.k, p.v}, .sums = {g.dq, {}}, .accumulate = g.accumulate_dq};
  with_plain_form(p, [&]<typename T, int kD>() {
    launch_plain<kKeys, kD, T>(kWhat, p, of_keys, bias, false, stream);
    if (p.query_rows() == 0) return;
    launch_plain<kQueries, kD, T>(kWhat, p, of_queries, bias, true, stream);
  });
}

}  // namespace hstu::cuda
