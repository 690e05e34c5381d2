#include "hstu/attention/cuda/backward_sm90.h"
#include "hstu/attention/cuda/launch.cuh"
#include "hstu/attention/cuda/work.cuh"

namespace hstu::cuda {
namespace {

// One warpgroup takes 64 rows, all threads of it one part of 64 columns at a time.
template <typename T, int kD>
__global__ void __launch_bounds__(256) round_dq_kernel(const __grid_constant__ BackwardArguments a) {
  wait_for_previous_launch();
  const int group = static_cast<int>(threadIdx.x) / 128, t = static_cast<int>(threadIdx.x) % 128,
            lane = t % 32;
  const int items = a.schedule.counters[1];
  for (int i = static_cast<int>(blockIdx.x); i < items; i += static_cast<int>(gridDim.x)) {
    const ScheduleItem item =
        a.schedule.items[items - 1 - i];  // the latest first: the cache still holds them
    Work w;
    begin_work(w, a.samples, item);
    const int block = static_cast<int>(item.head_and_tile & ((1u << kTileBits) - 1)) * 2 + group;
    if (block * 64 >= w.n) continue;
    const int row = block * 64 + t / 32 * 16 + lane / 4;
    const float* const from =
        a.dq_sum + sums_of_head(w.first, kD) + static_cast<std::int64_t>(block) * (64 * kD) + t * 4;
    T* const to = static_cast<T*>(a.dq) + (w.begin + static_cast<std::int64_t>(row)) * a.dq_row_stride +
                  w.head * a.dq_head_stride + lane % 4 * 8;
#pragma unroll 1
    for (int part = 0; part < kD / 64; ++part) {
      float d[32];
#pragma unroll
      for (int k = 0; k < 8; ++k) {
        const float4 four = *reinterpret_cast<const float4*>(from + (part * 8 + k) * 512);
        d[4 * k] = four.x, d[4 * k + 1] = four.y, d[4 * k + 2] = four.z, d[4 * k + 3] = four.w;
      }
      store_rows<T, 64>(d, to + part * 64, a.dq_row_stride, a.half_alpha * w.scale, row < w.n, row + 8 < w.n,
                        a.head_dim - part * 64);
    }
  }
}

}  // namespace

template <typename T, int kD>
void launch_round_dq(const BackwardArguments& arguments, int multiprocessors, cudaStream_t stream) {
  launch_early(round_dq_kernel<T, kD>, arguments, multiprocessors * 6, 1, 256, 0, stream,
               "attention backward, dQ");
}

template void launch_round_dq<__nv_bfloat16, 64>(const BackwardArguments&, int, cudaStream_t);
template void launch_round_dq<__nv_bfloat16, 128>(const BackwardArguments&, int, cudaStream_t);
template void launch_round_dq<__nv_bfloat16, 256>(const BackwardArguments&, int, cudaStream_t);
template void launch_round_dq<__half, 64>(const BackwardArguments&, int, cudaStream_t);
template void launch_round_dq<__half, 128>(const BackwardArguments&, int, cudaStream_t);
template void launch_round_dq<__half, 256>(const BackwardArguments&, int, cudaStream_t);

}  // namespace hstu::cuda
