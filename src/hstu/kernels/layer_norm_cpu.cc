#include <vector>

#include "hstu/base/threads.h"
#include "hstu/kernels/layer_norm.h"
#include "hstu/kernels/loops.h"
#include "hstu/kernels/reduce.h"
#include "hstu/kernels/scratch.h"

namespace hstu::kernels {
namespace {

// rows(p, begin, end, sums, scratch): a backward function of the table.
template <typename T, typename Rows>
void backward_rows(const LayerNormBackward<T>& p, const Rows& rows) {
  const std::int64_t n = p.width;
  std::vector<T> total(static_cast<std::size_t>(2 * n));  // the weight's gradient, then the bias's
  sum_over_rows(p.rows, 2 * n, Gradient<T>{total.data()}, [&](std::int64_t begin, std::int64_t end, T* sums) {
    const Scratch<T> scratch(4 * n);
    rows(p, begin, end, sums, scratch.data());
  });
  put_gradient(total.data(), n, p.dweight);
  put_gradient(total.data() + n, n, p.dbias);
}

}  // namespace

template <typename T>
void layer_norm(const LayerNormForward<T>& p, HostStream) {
  parallel_blocks(p.rows, kRowBlock,
                  [&](std::int64_t begin, std::int64_t end) { loops<T>().layer_norm(p, begin, end); });
}

template <typename T>
void layer_norm_backward(const LayerNormBackward<T>& p, HostStream) {
  backward_rows(p, loops<T>().layer_norm_backward);
}

template <typename T>
void swish_layer_norm(const LayerNormForward<T>& p, HostStream) {
  parallel_blocks(p.rows, kRowBlock,
                  [&](std::int64_t begin, std::int64_t end) { loops<T>().swish_layer_norm(p, begin, end); });
}

template <typename T>
void swish_layer_norm_backward(const LayerNormBackward<T>& p, HostStream) {
  backward_rows(p, loops<T>().swish_layer_norm_backward);
}

template void layer_norm(const LayerNormForward<float>&, HostStream);
template void layer_norm(const LayerNormForward<double>&, HostStream);
template void layer_norm_backward(const LayerNormBackward<float>&, HostStream);
template void layer_norm_backward(const LayerNormBackward<double>&, HostStream);
template void swish_layer_norm(const LayerNormForward<float>&, HostStream);
template void swish_layer_norm(const LayerNormForward<double>&, HostStream);
template void swish_layer_norm_backward(const LayerNormBackward<float>&, HostStream);
template void swish_layer_norm_backward(const LayerNormBackward<double>&, HostStream);

}  // namespace hstu::kernels
