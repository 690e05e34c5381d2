#include "hstu/kernels/cuda/launch.cuh"
#include "hstu/kernels/cuda/numbers.cuh"
#include "hstu/kernels/rotary.h"

namespace hstu::kernels {
namespace {

using namespace cuda;

template <typename N>
struct RotaryArguments {
  std::int64_t rows, heads, half;  // half: pairs of a head
  double base;
  bool back;
  const std::int32_t* position;
  const N* x;
  std::int64_t x_stride;
  Target<N> y;
  std::int64_t y_stride;
};

// A thread turns one pair of every head of a row: the angle, in double as on the host, is that of all heads.
template <typename N>
__global__ void turn(const RotaryArguments<N> a) {
  hstu::cuda::wait_for_previous_launch();
  const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at >= a.rows * a.half) return;
  const std::int64_t r = at / a.half, i = at % a.half;
  const double rate = pow(a.base, -static_cast<double>(i) / static_cast<double>(a.half));
  double s, c;
  sincos(a.position[r] * (a.back ? -rate : rate), &s, &c);
  const auto sine = static_cast<float>(s), cosine = static_cast<float>(c);
  for (std::int64_t h = 0; h < a.heads; ++h) {
    const std::int64_t column = h * 2 * a.half + i;
    const N* const x = a.x + r * a.x_stride + column;
    const float first = to_float(x[0]), second = to_float(x[a.half]);
    const std::int64_t y = r * a.y_stride + column;
    a.y.put(y, first * cosine - second * sine);
    a.y.put(y + a.half, first * sine + second * cosine);
  }
}

}  // namespace

template <typename T>
void rotary(const Rotary<T>& p, CudaStream stream) {
  const std::int64_t half = p.head_dim / 2;
  if (p.rows == 0) return;
  hstu::cuda::launch("rotary positions", turn<Native<T>>, blocks_for(p.rows * half, kThreads), kThreads,
                     stream.handle,
                     RotaryArguments<Native<T>>{.rows = p.rows,
                                                .heads = p.heads,
                                                .half = half,
                                                .base = p.base,
                                                .back = p.back,
                                                .position = p.position,
                                                .x = native(p.x),
                                                .x_stride = p.x_stride,
                                                .y = target(p.y),
                                                .y_stride = p.y_stride});
}

template void rotary(const Rotary<float>&, CudaStream);
template void rotary(const Rotary<BFloat16>&, CudaStream);

}  // namespace hstu::kernels
