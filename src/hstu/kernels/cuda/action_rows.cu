#include "hstu/kernels/action_rows.h"
#include "hstu/kernels/cuda/launch.cuh"
#include "hstu/kernels/cuda/numbers.cuh"

namespace hstu::kernels {
namespace {

using namespace cuda;

__device__ std::int64_t thread_number() {
  return static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
}

// (actions + 1, bits * width), one element a thread.
template <typename N>
__global__ void encode(std::int64_t actions, std::int64_t row, std::int64_t width, const std::uint8_t* action,
                       const std::uint8_t* bit, const N* table, const N* target, N* y) {
  hstu::cuda::wait_for_previous_launch();
  const std::int64_t i = thread_number();
  if (i >= (actions + 1) * row) return;
  const std::int64_t a = i / row, j = i % row;
  const N value = (a == actions ? target : table)[j];  // read beside the bits, not after them
  y[i] = a == actions || (action[a] & bit[j / width]) != 0 ? value : from_float<N>(0);
}

// One column a thread: an action is a mask of at most 8 bits, so that there are 256 rows at most.
template <typename N>
__global__ void encode_backward(std::int64_t actions, std::int64_t row, std::int64_t width,
                                const std::uint8_t* action, const std::uint8_t* bit, const N* dy,
                                Target<float> dtable, Target<float> dtarget) {
  hstu::cuda::wait_for_previous_launch();
  const std::int64_t j = thread_number();
  if (j >= row) return;
  constexpr int kAtOnce = 8;  // loads under way
  const int own_bit = bit[j / width];
  const float of_target = to_float(dy[actions * row + j]);
  float sum = 0;
  for (std::int64_t first = 0; first < actions; first += kAtOnce) {
    float v[kAtOnce];
    int bits[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const std::int64_t a = min(first + k, actions - 1);
      bits[k] = first + k < actions ? action[a] : 0;
      v[k] = to_float(dy[a * row + j]);
    }
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) sum = (bits[k] & own_bit) != 0 ? sum + v[k] : sum;
  }
  if (dtable.to != nullptr) dtable.put(j, sum);
  if (dtarget.to != nullptr) dtarget.put(j, of_target);
}

}  // namespace

template <typename T>
void action_rows(const ActionRowsForward<T>& p, CudaStream stream) {
  const std::int64_t row = p.bits * p.width;
  if (row == 0) return;
  hstu::cuda::launch("rows of actions", encode<Native<T>>, blocks_for((p.actions + 1) * row, kThreads),
                     kThreads, stream.handle, p.actions, row, p.width, p.action, p.bit, native(p.table),
                     native(p.target), native(p.y));
}

template <typename T>
void action_rows_backward(const ActionRowsBackward<T>& p, CudaStream stream) {
  const std::int64_t row = p.bits * p.width;
  if (row == 0) return;
  hstu::cuda::launch("rows of actions, backward", encode_backward<Native<T>>, blocks_for(row, kThreads),
                     kThreads, stream.handle, p.actions, row, p.width, p.action, p.bit, native(p.dy),
                     target(p.dtable), target(p.dtarget));
}

template void action_rows(const ActionRowsForward<float>&, CudaStream);
template void action_rows(const ActionRowsForward<BFloat16>&, CudaStream);
template void action_rows_backward(const ActionRowsBackward<float>&, CudaStream);
template void action_rows_backward(const ActionRowsBackward<BFloat16>&, CudaStream);

}  // namespace hstu::kernels
