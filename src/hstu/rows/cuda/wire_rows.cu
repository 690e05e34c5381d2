#include <span>
#include <vector>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "hstu/base/error.h"
#include "hstu/rows/cuda/list_launch.cuh"
#include "hstu/rows/wire_rows.h"

namespace hstu::cuda {
namespace {

struct List {
  float* rows;
  const std::int32_t* places;
  void* wire;
  std::int64_t size, dim, first_column, columns;
};
using Lists = ListsOf<List, kMostLists>;

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

// A warp moves columns of a row.
template <typename T, bool kToWire>
__global__ void move_rows(const __grid_constant__ Lists lists, unsigned long long* beyond) {
  wait_for_previous_launch();
  const List& list = lists.list[blockIdx.y];
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (i >= list.size) return;
  float* const row = list.rows + (list.places != nullptr ? list.places[i] : i) * list.dim + list.first_column;
  T* const wire = static_cast<T*>(list.wire) + i * list.columns;
  unsigned lost = 0;
  for (std::int64_t c = threadIdx.x % 32; c < list.columns; c += 32) {
    if constexpr (kToWire)
      lost += store(wire + c, row[c]) ? 0 : 1;
    else
      row[c] = load(wire + c);
  }
  if (kToWire && lost > 0) atomicAdd(beyond, static_cast<unsigned long long>(lost));
}

template <typename T, bool kToWire>
void move(std::span<const WireRows> lists, unsigned long long* beyond, const Stream& stream) {
  std::vector<List> of_kernel;
  for (const WireRows& w : lists)
    of_kernel.push_back({const_cast<float*>(w.rows.data<float>()),
                         w.places.defined() ? w.places.data<std::int32_t>() : nullptr,
                         const_cast<std::byte*>(w.wire.raw()), w.wire.rows(), w.rows.cols(), w.first_column,
                         w.wire.cols()});
  for_lists_of<kMostLists>(std::span<const List>(of_kernel), kWarps,
                           [&](dim3 blocks, const Lists& some, std::size_t) {
                             launch("moving rows to other ranks", move_rows<T, kToWire>, blocks, kThreads,
                                    stream.cuda_for_launches(), some, beyond);
                           });
}

template <bool kToWire>
void move(std::span<const WireRows> lists, unsigned long long* beyond, const Stream& stream) {
  if (lists.empty()) return;
  const DType type = lists.front().wire.dtype();
  if (type == DType::f32) return move<float, kToWire>(lists, beyond, stream);
  if (type == DType::bf16) return move<__nv_bfloat16, kToWire>(lists, beyond, stream);
  require(type == DType::f16, "rows do not travel as {}", to_string(type));
  move<__half, kToWire>(lists, beyond, stream);
}

}  // namespace

void to_wire(std::span<const WireRows> lists, Tensor beyond, const Stream& stream) {
  move<true>(lists, reinterpret_cast<unsigned long long*>(beyond.mutable_data<std::int64_t>()), stream);
}

void from_wire(std::span<const WireRows> lists, const Stream& stream) {
  move<false>(lists, nullptr, stream);
}

}  // namespace hstu::cuda
