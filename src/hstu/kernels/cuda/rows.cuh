// Elements of rows, eight of a lane at a time.
#pragma once

#include "hstu/kernels/cuda/launch.cuh"
#include "hstu/kernels/cuda/numbers.cuh"

namespace hstu::kernels::cuda {

inline constexpr std::int64_t kGroup = 8;  // columns of a lane at a time
inline constexpr std::int64_t kWarpColumns = 32 * kGroup;

// Over the lanes of a warp, or over each 2 kStep neighbours.
template <int kStep = 16>
__device__ float warp_sum(float x) {
#pragma unroll
  for (int step = kStep; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
  return x;
}
__device__ inline std::int64_t lane() {
  return threadIdx.x % 32;
}

// The first element of this thread, where threads have eight neighbours of a list each.
__device__ inline std::int64_t first_of_thread() {
  return kGroup * (static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x);
}

// The first `count` of eight elements, one by one. Calls, because inlined they are most of a kernel's code.
template <typename N>
__device__ __noinline__ void load_elements(const N* from, int count, float* x) {
  for (int i = 0; i < kGroup; ++i) x[i] = i < count ? to_float(from[i]) : 0.0f;
}
template <typename N>
__device__ __noinline__ void store_elements(N* to, int count, const float* x) {
  for (int i = 0; i < count; ++i) to[i] = from_float<N>(x[i]);
}

// Eight elements as they are in memory, so that a thread can load the next ones long before it needs them.
template <typename N>
struct Packed {
  static constexpr int kWords = kGroup * sizeof(N) / 16;
  union {
    uint4 words[kWords];
    N elements[kGroup];
  };
  __device__ Packed() : words{} {}
  __device__ void unpack(float (&x)[kGroup]) const {
    if constexpr (sizeof(N) == 2) {  // without halves of registers
      const unsigned pairs[kGroup / 2] = {words[0].x, words[0].y, words[0].z, words[0].w};
#pragma unroll
      for (int i = 0; i < kGroup / 2; ++i) {
        x[2 * i] = __uint_as_float(pairs[i] << 16);
        x[2 * i + 1] = __uint_as_float(pairs[i] & 0xffff0000u);
      }
    } else {
#pragma unroll
      for (int i = 0; i < kGroup; ++i) x[i] = to_float(elements[i]);
    }
  }
  __device__ static Packed of(const float (&x)[kGroup]) {
    Packed packed;
    if constexpr (sizeof(N) == 2) {
      __nv_bfloat162 pairs[kGroup / 2];  // converted two at a time
#pragma unroll
      for (int i = 0; i < kGroup / 2; ++i) pairs[i] = __floats2bfloat162_rn(x[2 * i], x[2 * i + 1]);
      packed.words[0] = {bits_of(pairs[0]), bits_of(pairs[1]), bits_of(pairs[2]), bits_of(pairs[3])};
    } else {
#pragma unroll
      for (int i = 0; i < kGroup; ++i) packed.elements[i] = x[i];
    }
    return packed;
  }

 private:
  __device__ static unsigned bits_of(const __nv_bfloat162& pair) {
    return reinterpret_cast<const unsigned&>(pair);
  }
};

// Whether every group of every row of a matrix is whole and at a multiple of 16 bytes. The functions below
// with kWhole = true test neither, so that nothing keeps the compiler from having several loads under way.
template <typename N>
bool is_whole(const N* x, std::int64_t stride, std::int64_t width) {
  return reinterpret_cast<std::uintptr_t>(x) % 16 == 0 && stride % kGroup == 0 && width % kGroup == 0;
}

// Elements [c, c + 8) of a row of `width`; zero beyond it. 16 bytes at a time where the address allows it.
template <bool kWhole = false, typename N>
__device__ Packed<N> load_packed(const N* row, std::int64_t c, std::int64_t width) {
  const N* const at = row + c;
  Packed<N> packed;
  if (kWhole || (c + kGroup <= width && reinterpret_cast<std::uintptr_t>(at) % 16 == 0)) {
#pragma unroll
    for (int i = 0; i < Packed<N>::kWords; ++i) packed.words[i] = reinterpret_cast<const uint4*>(at)[i];
  } else if (c < width) {
    float apart[kGroup];  // so that the others stay in registers
    load_elements(at, static_cast<int>(min(width - c, kGroup)), apart);
#pragma unroll
    for (int i = 0; i < kGroup; ++i) packed.elements[i] = from_float<N>(apart[i]);
  }
  return packed;
}
template <bool kWhole = false, typename N>
__device__ void load_group(const N* row, std::int64_t c, std::int64_t width, float (&x)[kGroup]) {
  load_packed<kWhole>(row, c, width).unpack(x);
}

// The same elements from x, or added to by x. Nothing is written beyond the row, or without a target.
template <bool kWhole = false, typename N>
__device__ void put_group(const Target<N>& target, std::int64_t first, std::int64_t c, std::int64_t width,
                          float (&x)[kGroup]) {
  if (target.to == nullptr) return;
  N* const row = target.to + first;
  N* const at = row + c;
  if (target.accumulate) {
    float before[kGroup];
    load_group<kWhole>(row, c, width, before);
#pragma unroll
    for (int i = 0; i < kGroup; ++i) x[i] += before[i];
  }
  if (kWhole || (c + kGroup <= width && reinterpret_cast<std::uintptr_t>(at) % 16 == 0)) {
    const auto packed = Packed<N>::of(x);
#pragma unroll
    for (int i = 0; i < Packed<N>::kWords; ++i) reinterpret_cast<uint4*>(at)[i] = packed.words[i];
  } else {
    float apart[kGroup];
#pragma unroll
    for (int i = 0; i < kGroup; ++i) apart[i] = x[i];
    store_elements(at, static_cast<int>(max(std::int64_t{0}, min(width - c, kGroup))), apart);
  }
}

}  // namespace hstu::kernels::cuda
