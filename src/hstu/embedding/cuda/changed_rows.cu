#include <algorithm>

#include "hstu/device/cuda/check.h"
#include "hstu/embedding/changed_rows.h"

namespace hstu::cuda {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / 32;
constexpr std::size_t kMostLists = 64;  // of one launch: they travel as its argument

struct List {
  const float *before, *now;
  std::int32_t* places;
  unsigned long long* count;
  std::int64_t n, dim;
};
struct Lists {
  List list[kMostLists];
};

// A warp compares a row. Bits are compared, because a NaN differs from itself.
__global__ void find_changed_rows(const __grid_constant__ Lists lists) {
  const List& list = lists.list[blockIdx.y];
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (i >= list.n) return;
  bool differs = false;
  for (std::int64_t c = threadIdx.x % 32; c < list.dim; c += 32)
    differs |= __float_as_uint(list.before[i * list.dim + c]) != __float_as_uint(list.now[i * list.dim + c]);
  if (__any_sync(0xffffffffU, differs) && threadIdx.x % 32 == 0)
    list.places[atomicAdd(list.count, 1ULL)] = static_cast<std::int32_t>(i);
}

}  // namespace

void find_changed(std::span<const ChangedRows> lists, const Stream& stream) {
  for (std::size_t first = 0; first < lists.size(); first += kMostLists) {
    Lists some{};
    std::int64_t longest = 0;
    const auto part = lists.subspan(first, std::min(kMostLists, lists.size() - first));
    for (std::size_t k = 0; k < part.size(); ++k) {
      ChangedRows rows = part[k];
      some.list[k] = {rows.before.data<float>(),
                      rows.now.data<float>(),
                      rows.places.mutable_data<std::int32_t>(),
                      reinterpret_cast<unsigned long long*>(rows.count.mutable_data<std::int64_t>()),
                      rows.now.rows(),
                      rows.now.cols()};
      longest = std::max(longest, rows.now.rows());
    }
    if (longest == 0) continue;
    const dim3 blocks(static_cast<unsigned>((longest + kWarps - 1) / kWarps),
                      static_cast<unsigned>(part.size()));
    find_changed_rows<<<blocks, kThreads, 0, stream.cuda()>>>(some);
  }
  check_cuda(cudaGetLastError(), "comparing rows");
}

}  // namespace hstu::cuda
