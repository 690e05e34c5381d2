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

template void gate(const GateForward<float>&, HostStream);
template void gate(const GateForward<double>&, HostStream);
template void gate_backward(const GateBackward<float>&, HostStream);
template void gate_backward(const GateBackward<double>&, HostStream);

}  // namespace hstu::kernels
