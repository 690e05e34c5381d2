#include "hstu/attention/cuda/launch.cuh"
#include "hstu/attention/cuda/query_sums.cuh"

namespace hstu::cuda {
namespace {

// One warp takes 16 rows, one part of 64 columns at a time. The latest items first: the cache still holds
// them.
template <typename T, int kD>
__global__ void __launch_bounds__(256) round_dq_kernel(const __grid_constant__ BackwardArguments a) {
  wait_for_previous_launch();
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int parts = a.schedule.counters[1] * kParts;
  for (int i = static_cast<int>(blockIdx.x * 8 + threadIdx.x / 32); i < parts;
       i += static_cast<int>(gridDim.x) * 8) {
    const int p = parts - 1 - i;
    if (p / a.workers < a.schedule.rounded[p % a.workers]) continue;
    const ScheduleItem item = a.schedule.items[p / kParts];
    const int tile = item.tile(), part = p % kParts;
    const int row = tile * kBackwardTile + part * kRoundedRows + lane / 4;
    if (row - lane / 4 >= item.length) continue;
    const float* const from = sums_of_part<kD>(a, item, part) + lane * 4;
    T* const to = static_cast<T*>(a.dq) + (item.begin + static_cast<std::int64_t>(row)) * a.dq_row_stride +
                  item.head() * a.dq_head_stride + lane % 4 * 8;
    const float scale = a.half_alpha * scale_of(a.samples, item.sample);
#pragma unroll 1
    for (int column = 0; column < kD; column += 64) {
      float d[32];
#pragma unroll
      for (int k = 0; k < 8; ++k) {
        const float4 four = *reinterpret_cast<const float4*>(from + (column / 8 + k) * 512);
        d[4 * k] = four.x, d[4 * k + 1] = four.y, d[4 * k + 2] = four.z, d[4 * k + 3] = four.w;
      }
      store_rows<T, 64>(d, to + column, a.dq_row_stride, scale, row < item.length, row + 8 < item.length,
                        a.head_dim - column);
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
