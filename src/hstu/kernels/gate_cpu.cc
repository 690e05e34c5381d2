#include <cmath>
#include <vector>

#include "hstu/base/threads.h"
#include "hstu/kernels/gate.h"
#include "hstu/kernels/loops.h"
#include "hstu/kernels/reduce.h"
#include "hstu/kernels/scratch.h"

namespace hstu::kernels {

template <typename T>
void gate(const GateForward<T>& p, HostStream) {
  parallel_blocks(p.rows, kRowBlock, [&](std::int64_t begin, std::int64_t end) {
    const Scratch<T> factors(gate_parts(p.form) * p.width);
    loops<T>().gate(p, begin, end, factors.data());
  });
}

template <typename T>
void gate_backward(const GateBackward<T>& p, HostStream) {
  const std::int64_t n = p.width;
  std::vector<T> total(static_cast<std::size_t>(2 * n));
  sum_over_rows(p.rows, 2 * n, Gradient<T>{total.data()}, [&](std::int64_t begin, std::int64_t end, T* sums) {
    const Scratch<T> scratch((gate_parts(p.form) + 4) * n);
    loops<T>().gate_backward(p, begin, end, sums, scratch.data());
  });
  put_gradient(total.data(), n, p.dweight);
  put_gradient(total.data() + n, n, p.dbias);
}

template <typename T>
void gate_moments(const GateMoments<T>& p, HostStream) {
  parallel_blocks(p.rows, kRowBlock,
                  [&](std::int64_t begin, std::int64_t end) { loops<T>().gate_moments(p, begin, end); });
}

template <typename S>
void combine_moments(const CombineMoments<S>& p, HostStream) {
  for (std::int64_t r = 0; r < p.rows; ++r) {
    S mean = 0, squares = 0;
    const auto of_rank = [&](std::int64_t rank) { return p.moments + 2 * (rank * p.rows + r); };
    for (std::int64_t rank = 0; rank < p.ranks; ++rank) mean += of_rank(rank)[0];
    mean /= static_cast<S>(p.ranks);
    for (std::int64_t rank = 0; rank < p.ranks; ++rank) {
      const S d = of_rank(rank)[0] - mean;
      squares += of_rank(rank)[1] + static_cast<S>(p.width) * d * d;
    }
    p.mean[r] = mean;
    p.rstd[r] = S(1) / std::sqrt(squares / static_cast<S>(p.ranks * p.width) + p.epsilon);
  }
}

template <typename T>
void gate_backward_sums(const GateBackward<T>& p, HostStream) {
  parallel_blocks(p.rows, kRowBlock, [&](std::int64_t begin, std::int64_t end) {
    const Scratch<T> scratch((gate_parts(p.form) + 4) * p.width);
    loops<T>().gate_sums(p, begin, end, scratch.data());
  });
}

template void gate(const GateForward<float>&, HostStream);
template void gate(const GateForward<double>&, HostStream);
template void gate_backward(const GateBackward<float>&, HostStream);
template void gate_backward(const GateBackward<double>&, HostStream);
template void gate_moments(const GateMoments<float>&, HostStream);
template void gate_moments(const GateMoments<double>&, HostStream);
template void combine_moments(const CombineMoments<float>&, HostStream);
template void combine_moments(const CombineMoments<double>&, HostStream);
template void gate_backward_sums(const GateBackward<float>&, HostStream);
template void gate_backward_sums(const GateBackward<double>&, HostStream);

}  // namespace hstu::kernels
