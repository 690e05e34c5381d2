#include <algorithm>

#include "hstu/attention/cuda/launch_tensor_cores.h"
#include "hstu/attention/cuda/samples.h"
#include "hstu/attention/cuda/softmax_statistics.h"
#include "hstu/attention/cuda/work.cuh"
#include "hstu/device/cuda/launch.cuh"

namespace hstu::cuda {
namespace {

constexpr int kStatisticsThreads = 256;

struct StatisticsArguments {
  Samples samples;
  Schedule schedule;
  AttentionInput o, d_o;
  const float* log_sums;
  float* statistics;
  int head_dim;
};

template <typename T>
__device__ float dot_of_eight(const void* a, const void* b) {
  const uint4 x = __ldg(static_cast<const uint4*>(a)), y = __ldg(static_cast<const uint4*>(b));
  float sum = 0;
  const auto add = [&](std::uint32_t u, std::uint32_t v) {
    const float2 p = unpack<T>(u), q = unpack<T>(v);
    sum = fmaf(p.x, q.x, fmaf(p.y, q.y, sum));
  };
  add(x.x, y.x), add(x.y, y.y), add(x.z, y.z), add(x.w, y.w);
  return sum;
}

// The mean of dP by the weights is that of dO O, without the factor that O has. kLanes lanes share a row.
template <typename T, int kLanes>
__global__ void __launch_bounds__(kStatisticsThreads)
    statistics_kernel(const __grid_constant__ StatisticsArguments a) {
  wait_for_previous_launch();
  let_next_launch_begin();
  const int lane = static_cast<int>(threadIdx.x) % kLanes, items = a.schedule.counters[1];
  const bool inside = lane * 8 < a.head_dim;
  for (int index = static_cast<int>(blockIdx.x); index < items; index += static_cast<int>(gridDim.x)) {
    const ScheduleItem item = a.schedule.items[index];
    Work w;
    begin_work(w, a.samples, item);
    const auto at = [&](const AttentionInput& rows, std::int64_t row) {
      return static_cast<const T*>(rows.data) + row * rows.row_stride + w.head * rows.head_stride + lane * 8;
    };
#pragma unroll
    for (int r = static_cast<int>(threadIdx.x) / kLanes; r < kBackwardTile;
         r += kStatisticsThreads / kLanes) {
      const int row = item.tile() * kBackwardTile + r;
      const std::int64_t of_batch = w.begin + static_cast<std::int64_t>(row);
      float sum = 0;
      if (row < w.n && inside) sum = dot_of_eight<T>(at(a.o, of_batch), at(a.d_o, of_batch));
#pragma unroll
      for (int step = kLanes / 2; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
      if (lane != 0) continue;
      float* const to =
          a.statistics + statistics_place(w.first, row / kStatisticsRows) + row % kStatisticsRows;
      to[0] = row < w.n ? a.log_sums[of_batch * a.samples.heads + w.head] * 1.4426950408889634f : 0.0f;
      to[kStatisticsRows] = row < w.n && w.scale != 0 ? sum / w.scale : 0.0f;
    }
  }
}

}  // namespace

std::int64_t softmax_statistics_bytes(const AttentionProblem& p) {
  if (p.score != ScoreFunction::softmax) return 0;
  return aligned(schedule_items(p, kBackwardTile) * kBackwardTile * 2 * 4);
}

void make_softmax_statistics(const AttentionProblem& p, const AttentionGradients& g, const Schedule& schedule,
                             float* statistics, cudaStream_t stream) {
  const StatisticsArguments arguments{
      samples_of(p), schedule, g.o, g.d_o, p.log_sums, statistics, static_cast<int>(p.head_dim)};
  const std::int64_t most = 4096;  // blocks; each takes more than one tile of larger batches
  const auto blocks = static_cast<int>(std::min(most, schedule_items(p, kBackwardTile)));
  with_softmax_kernel(p, [&]<typename T, int kD>() {
    launch_early(statistics_kernel<T, kD / 8>, arguments, blocks, 1, kStatisticsThreads, 0, stream,
                 "attention backward, statistics of the softmax");
  });
}

}  // namespace hstu::cuda
