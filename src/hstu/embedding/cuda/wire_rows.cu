#include <algorithm>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "hstu/base/error.h"
#include "hstu/device/cuda/check.h"
#include "hstu/embedding/wire_rows.h"

namespace hstu::cuda {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / 32;
constexpr std::size_t kMostLists = 64;  // of one launch: they travel as its argument

struct List {
  float* rows;
  const std::int32_t* places;
  void* wire;
  std::int64_t n, dim;
};
struct Lists {
  List list[kMostLists];
};

__device__ float load(const float* wire) {
  return *wire;
}
__device__ float load(const __nv_bfloat16* wire) {
  return __bfloat162float(*wire);
}
__device__ float load(const __half* wire) {
  return __half2float(*wire);
}
// False: the value is finite and its rounding is not.
__device__ bool store(float* wire, float x) {
  *wire = x;
  return true;
}
__device__ bool store(__nv_bfloat16* wire, float x) {
  *wire = __float2bfloat16(x);
  return !isinf(__bfloat162float(*wire)) || isinf(x);
}
__device__ bool store(__half* wire, float x) {
  *wire = __float2half(x);
  return !isinf(__half2float(*wire)) || isinf(x);
}

// A warp moves a row.
template <typename T, bool kToWire>
__global__ void move_rows(const __grid_constant__ Lists lists, unsigned long long* beyond) {
  const List& list = lists.list[blockIdx.y];
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (i >= list.n) return;
  float* const row = list.rows + (list.places != nullptr ? list.places[i] : i) * list.dim;
  T* const wire = static_cast<T*>(list.wire) + i * list.dim;
  unsigned lost = 0;
  for (std::int64_t c = threadIdx.x % 32; c < list.dim; c += 32) {
    if constexpr (kToWire)
      lost += store(wire + c, row[c]) ? 0 : 1;
    else
      row[c] = load(wire + c);
  }
  if (kToWire && lost > 0) atomicAdd(beyond, static_cast<unsigned long long>(lost));
}

template <typename T, bool kToWire>
void launch(std::span<const WireRows> lists, unsigned long long* beyond, const Stream& stream) {
  for (std::size_t first = 0; first < lists.size(); first += kMostLists) {
    Lists some{};
    std::int64_t longest = 0;
    const auto part = lists.subspan(first, std::min(kMostLists, lists.size() - first));
    for (std::size_t k = 0; k < part.size(); ++k) {
      const WireRows& w = part[k];
      some.list[k] = {const_cast<float*>(w.rows.data<float>()),
                      w.places.defined() ? w.places.data<std::int32_t>() : nullptr,
                      const_cast<std::byte*>(w.wire.raw()), w.wire.rows(), w.rows.cols()};
      longest = std::max(longest, w.wire.rows());
    }
    if (longest == 0) continue;
    const dim3 blocks(static_cast<unsigned>((longest + kWarps - 1) / kWarps),
                      static_cast<unsigned>(part.size()));
    move_rows<T, kToWire><<<blocks, kThreads, 0, stream.cuda()>>>(some, beyond);
  }
  check_cuda(cudaGetLastError(), "moving rows to other ranks");
}

template <bool kToWire>
void launch(std::span<const WireRows> lists, unsigned long long* beyond, const Stream& stream) {
  if (lists.empty()) return;
  const DType type = lists.front().wire.dtype();
  if (type == DType::f32) return launch<float, kToWire>(lists, beyond, stream);
  if (type == DType::bf16) return launch<__nv_bfloat16, kToWire>(lists, beyond, stream);
  require(type == DType::f16, "rows do not travel as {}", to_string(type));
  launch<__half, kToWire>(lists, beyond, stream);
}

}  // namespace

void to_wire(std::span<const WireRows> lists, Tensor beyond, const Stream& stream) {
  launch<true>(lists, reinterpret_cast<unsigned long long*>(beyond.mutable_data<std::int64_t>()), stream);
}

void from_wire(std::span<const WireRows> lists, const Stream& stream) {
  launch<false>(lists, nullptr, stream);
}

}  // namespace hstu::cuda
