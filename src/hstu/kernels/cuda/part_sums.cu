#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "hstu/device/launch_groups.h"
#include "hstu/kernels/cuda/part_sums.cuh"

namespace hstu::kernels::cuda {
namespace {

constexpr int kSumWarps = 32;  // many, because little else hides the time of reading

// The warps that share the parts of an element; the others of a block have other elements.
__host__ __device__ inline int sharing_warps(std::uint32_t count) {
  int warps = 1;
  while (warps < kSumWarps && static_cast<std::uint32_t>(warps) < count) warps *= 2;
  return warps;
}

struct Sum {
  const float* parts;
  float* to;
  std::uint32_t count, stride, size, width, to_stride;
  std::uint32_t first : 31;  // block
  std::uint32_t accumulate : 1;
};
inline constexpr int kMostPartSums = 80;  // arguments of 4 KB
struct Sums {
  Sum each[kMostPartSums];
  int count = 0;
  unsigned blocks = 0;
};

// Warp w of those that share an element adds up parts w, w + warps, ..., then the first of them adds their
// sums in order.
__global__ void __launch_bounds__(32 * kSumWarps) add_all_parts(const __grid_constant__ Sums sums) {
  __shared__ float of_warps[kSumWarps][32];
  hstu::cuda::wait_for_previous_launch();
  const Sum& s = of_block(sums);
  const int warps = sharing_warps(s.count), warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const std::uint32_t group = (blockIdx.x - s.first) * (kSumWarps / warps) + warp / warps,
                      i = 32 * group + lane;
  float sum = 0;
  if (i < s.size) {
    const float* const part = s.parts + i;
#pragma unroll 8
    for (std::uint32_t p = warp % warps; p < s.count; p += warps)
      sum += part[static_cast<std::uint64_t>(p) * s.stride];
  }
  if (warps > 1) {
    of_warps[warp][lane] = sum;
    __syncthreads();
    if (warp % warps > 0) return;
    for (int w = 1; w < warps; ++w) sum += of_warps[warp + w][lane];
  }
  if (i >= s.size) return;
  const std::uint64_t at = static_cast<std::uint64_t>(i / s.width) * s.to_stride + i % s.width;
  Target<float>{s.to, s.accumulate != 0}.put(at, sum);
}

// Of one launch.
class SumList {
 public:
  bool is_full() const { return sums_.count == kMostPartSums; }
  bool adds_to(const float* to) const {
    return std::any_of(sums_.each, sums_.each + sums_.count, [&](const Sum& s) { return s.to == to; });
  }
  void add(const PartSum& p) {
    constexpr std::int64_t kMost = std::int64_t{1} << 31;
    require(p.count < kMost && p.stride < kMost && p.size < kMost && p.to_stride < kMost,
            "{} parts of {} elements are too many for one kernel", p.count, p.stride);
    const auto narrow = [](std::int64_t x) { return static_cast<std::uint32_t>(x); };
    const std::uint32_t count = narrow(p.count);
    sums_.each[sums_.count++] = {p.parts,
                                 p.to.to,
                                 count,
                                 narrow(p.stride),
                                 narrow(p.size),
                                 narrow(p.width),
                                 narrow(p.to_stride),
                                 sums_.blocks,
                                 p.to.accumulate};
    sums_.blocks += blocks_for(p.size, 32 * (kSumWarps / sharing_warps(count)));
  }
  void launch(CUstream_st* stream) {
    if (sums_.count > 0)
      hstu::cuda::launch("sums of parts", add_all_parts, sums_.blocks, 32 * kSumWarps, stream, sums_);
    sums_.count = 0;
    sums_.blocks = 0;
  }

 private:
  Sums sums_{};
};

class LateSums final : public LaunchGroups::Late {
 public:
  explicit LateSums(CUstream_st* stream) : stream_(stream) {}
  void add(const PartSum& sum) {
    if (list_.is_full() || list_.adds_to(sum.to.to)) launch();
    list_.add(sum);
  }
  void keep(Scratch<float> memory) { memory_.push_back(std::move(memory)); }
  void launch() override { list_.launch(stream_); }

 private:
  CUstream_st* stream_;
  SumList list_;
  std::vector<Scratch<float>> memory_;
};

LateSums* late_sums(CUstream_st* stream) {
  LaunchGroups* const groups = LaunchGroups::that_keep(stream);
  if (groups == nullptr) return nullptr;
  if (groups->late() == nullptr) groups->set_late(std::make_unique<LateSums>(stream));
  return dynamic_cast<LateSums*>(groups->late());
}

}  // namespace

void add_parts(std::span<const PartSum> sums, Scratch<float> memory, CudaStream stream) {
  const auto is_wanted = [](const PartSum& s) { return s.to.to != nullptr && s.size > 0; };
  const bool may_be_late = std::all_of(sums.begin(), sums.end(), [](const PartSum& s) {
    return s.to.to == nullptr || (s.to.late && s.to.accumulate);
  });
  if (LateSums* const late = may_be_late ? late_sums(stream.handle) : nullptr) {
    for (const PartSum& s : sums)
      if (is_wanted(s)) late->add(s);
    return late->keep(std::move(memory));
  }
  SumList list;
  for (const PartSum& s : sums) {
    if (!is_wanted(s)) continue;
    if (list.is_full()) list.launch(stream.handle);
    list.add(s);
  }
  list.launch(stream.handle);
}

}  // namespace hstu::kernels::cuda
