#include "hstu/kernels/cuda/launch.cuh"
#include "hstu/kernels/cuda/numbers.cuh"
#include "hstu/kernels/elementwise.h"

namespace hstu::kernels {
namespace {

using namespace cuda;

__device__ std::int64_t element() {
  return static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
}

template <typename N>
__global__ void add_elements(std::int64_t size, const N* a, const N* b, N* y) {
  if (const std::int64_t i = element(); i < size) y[i] = from_float<N>(to_float(a[i]) + to_float(b[i]));
}

template <typename N>
__global__ void multiply_elements(std::int64_t size, const N* a, const N* b, Target<N> y) {
  if (const std::int64_t i = element(); i < size) y.put(i, to_float(a[i]) * to_float(b[i]));
}

template <typename N>
__global__ void pass_elements(std::int64_t size, const N* dy, Target<N> dx) {
  if (const std::int64_t i = element(); i < size) dx.put(i, to_float(dy[i]));
}

// (rows, width) with rows `from_stride` and `to_stride` apart.
template <typename N>
__global__ void move_columns(std::int64_t rows, std::int64_t width, const N* from, std::int64_t from_stride,
                             Target<N> to, std::int64_t to_stride) {
  const std::int64_t i = element();
  if (i >= rows * width) return;
  const std::int64_t r = i / width, c = i % width;
  to.put(r * to_stride + c, to_float(from[r * from_stride + c]));
}

}  // namespace

template <typename T>
void add(const Add<T>& p, CudaStream stream) {
  if (p.size == 0) return;
  add_elements<<<blocks_for(p.size, kThreads), kThreads, 0, stream.handle>>>(p.size, native(p.a), native(p.b),
                                                                             native(p.y));
  check_launch("add");
}

template <typename T>
void multiply(const Multiply<T>& p, CudaStream stream) {
  if (p.size == 0) return;
  multiply_elements<<<blocks_for(p.size, kThreads), kThreads, 0, stream.handle>>>(
      p.size, native(p.a), native(p.b), Target<Native<T>>{native(p.y)});
  check_launch("multiply");
}

template <typename T>
void multiply_backward(const MultiplyBackward<T>& p, CudaStream stream) {
  if (p.size == 0) return;
  const auto times = [&](const T* other, const Gradient<T>& gradient) {
    if (gradient.to == nullptr) return;
    multiply_elements<<<blocks_for(p.size, kThreads), kThreads, 0, stream.handle>>>(
        p.size, native(p.dy), native(other), target(gradient));
  };
  times(p.b, p.da);
  times(p.a, p.db);
  check_launch("multiply_backward");
}

template <typename T>
void pass_gradient(const PassGradient<T>& p, CudaStream stream) {
  if (p.size == 0 || p.dx.to == nullptr) return;
  pass_elements<<<blocks_for(p.size, kThreads), kThreads, 0, stream.handle>>>(p.size, native(p.dy),
                                                                              target(p.dx));
  check_launch("pass_gradient");
}

template <typename T>
void concat_columns(const ConcatColumns<T>& p, CudaStream stream) {
  std::int64_t n = 0, at = 0;
  for (const auto& part : p.parts) n += part.width;
  for (const auto& [x, width] : p.parts) {
    if (p.rows * width > 0) {
      move_columns<<<blocks_for(p.rows * width, kThreads), kThreads, 0, stream.handle>>>(
          p.rows, width, native(x), width, Target<Native<T>>{native(p.y + at)}, n);
    }
    at += width;
  }
  check_launch("concat_columns");
}

template <typename T>
void concat_columns_backward(const ConcatColumnsBackward<T>& p, CudaStream stream) {
  std::int64_t n = 0, at = 0;
  for (const auto& part : p.parts) n += part.width;
  for (const auto& [dx, width] : p.parts) {
    if (dx.to != nullptr && p.rows * width > 0) {
      move_columns<<<blocks_for(p.rows * width, kThreads), kThreads, 0, stream.handle>>>(
          p.rows, width, native(p.dy + at), n, target(dx), width);
    }
    at += width;
  }
  check_launch("concat_columns_backward");
}

template void add(const Add<float>&, CudaStream);
template void add(const Add<BFloat16>&, CudaStream);
template void multiply(const Multiply<float>&, CudaStream);
template void multiply(const Multiply<BFloat16>&, CudaStream);
template void multiply_backward(const MultiplyBackward<float>&, CudaStream);
template void multiply_backward(const MultiplyBackward<BFloat16>&, CudaStream);
template void pass_gradient(const PassGradient<float>&, CudaStream);
template void pass_gradient(const PassGradient<BFloat16>&, CudaStream);
template void concat_columns(const ConcatColumns<float>&, CudaStream);
template void concat_columns(const ConcatColumns<BFloat16>&, CudaStream);
template void concat_columns_backward(const ConcatColumnsBackward<float>&, CudaStream);
template void concat_columns_backward(const ConcatColumnsBackward<BFloat16>&, CudaStream);

}  // namespace hstu::kernels
