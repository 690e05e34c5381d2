#include <span>
#include <vector>

#include "hstu/embedding/changed_rows.h"
#include "hstu/rows/cuda/list_launch.cuh"

namespace hstu::cuda {
namespace {

struct List {
  const float *before, *now;
  std::int32_t* places;
  unsigned long long* count;
  std::int64_t size, dim;
};
using Lists = ListsOf<List, kMostLists>;

// A warp compares a row. Bits are compared, because a NaN differs from itself.
__global__ void find_changed_rows(const __grid_constant__ Lists lists) {
  wait_for_previous_launch();
  const List& list = lists.list[blockIdx.y];
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (i >= list.size) return;
  bool differs = false;
  for (std::int64_t c = threadIdx.x % 32; c < list.dim; c += 32)
    differs |= __float_as_uint(list.before[i * list.dim + c]) != __float_as_uint(list.now[i * list.dim + c]);
  if (__any_sync(0xffffffffU, differs) && threadIdx.x % 32 == 0)
    list.places[atomicAdd(list.count, 1ULL)] = static_cast<std::int32_t>(i);
}

}  // namespace

void find_changed(std::span<const ChangedRows> lists, const Stream& stream) {
  std::vector<List> of_kernel;
  for (ChangedRows rows : lists)
    of_kernel.push_back({rows.before.data<float>(), rows.now.data<float>(),
                         rows.places.mutable_data<std::int32_t>(),
                         reinterpret_cast<unsigned long long*>(rows.count.mutable_data<std::int64_t>()),
                         rows.now.rows(), rows.now.cols()});
  for_lists_of<kMostLists>(
      std::span<const List>(of_kernel), kWarps, [&](dim3 blocks, const Lists& some, std::size_t) {
        launch("comparing rows", find_changed_rows, blocks, kThreads, stream.cuda_for_launches(), some);
      });
}

}  // namespace hstu::cuda
