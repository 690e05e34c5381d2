// Masks of wgmma accumulators, and their stores to memory. Of 64 rows by N columns a thread of a warpgroup
// holds row 16 (warp) + lane / 4 and the row 8 after it: element 4 j + 2 hf + e is in the first or second of
// them (hf) and in column 8 j + 2 (lane % 4) + e.
#pragma once

#include <cstdint>

#include "hstu/attention/cuda/work.cuh"
#include "hstu/device/cuda/mma.cuh"
#include "hstu/device/cuda/ptx.cuh"
#include "hstu/kernels/cuda/numbers.cuh"

namespace hstu::cuda {

// The score of a key that a query does not see: alpha / 2 times it is -32, where tanh is -1 to the last bit,
// so that silu and its derivative are exactly zero. (With alpha = 0 every result is zero for any score.)
__device__ __forceinline__ float unseen_score(float half_alpha) {
  return half_alpha == 0.0f ? 0.0f : -32.0f / half_alpha;
}

// Writes `unseen` to the elements whose row `hf` (0: a, 1: b) does not see their column of the 64 x N
// accumulator. Column j of the accumulator is `base` + j; `base` includes 2 (lane % 4).
template <int N>
__device__ __forceinline__ void apply_mask(float* x, const Intervals& a, const Intervals& b,
                                           std::int32_t base, float unseen) {
  const auto shifted = [&](Intervals s) {
    s.end0 -= base, s.lo1 -= base, s.hi1 -= base, s.lo2 -= base, s.hi2 -= base;
    return s;
  };
  const Intervals rows[2] = {shifted(a), shifted(b)};
#pragma unroll
  for (int i = 0; i < N / 2; ++i) x[i] = rows[i / 2 % 2].contains(i / 4 * 8 + i % 2) ? x[i] : unseen;
}

// The same for the interval [lo, hi) of the first row, and 8 columns on for the second. Most masks have one
// bound; all threads agree on which.
template <int N>
__device__ __forceinline__ void apply_band(float* x, std::int32_t lo, std::int32_t hi, std::int32_t base,
                                           float unseen) {
  const std::int32_t low[2] = {lo - base, lo - base + 8}, high[2] = {hi - base, hi - base + 8};
  if (hi >= kUnlimited) {
#pragma unroll
    for (int i = 0; i < N / 2; ++i) x[i] = i / 4 * 8 + i % 2 >= low[i / 2 % 2] ? x[i] : unseen;
  } else if (lo < -kUnlimited / 2) {
#pragma unroll
    for (int i = 0; i < N / 2; ++i) x[i] = i / 4 * 8 + i % 2 < high[i / 2 % 2] ? x[i] : unseen;
  } else {
#pragma unroll
    for (int i = 0; i < N / 2; ++i) {
      const int column = i / 4 * 8 + i % 2;
      x[i] = column >= low[i / 2 % 2] && column < high[i / 2 % 2] ? x[i] : unseen;
    }
  }
}

// Masks a 64 x N accumulator whose first row is query `query` (the second is 8 rows on) and whose first
// column is key `base`.
template <int N>
__device__ __forceinline__ void mask_keys(float* x, const Samples& samples, const Work& w, std::int32_t query,
                                          std::int32_t base, float unseen) {
  if (w.c == 0 && w.h == w.n) {  // history only; keys beyond the end need no mask
    apply_band<N>(x, query - samples.left, query + samples.right + 1, base, unseen);
  } else {
    const SampleMask mask = mask_of(samples, w);
    apply_mask<N>(x, keys_of_query(mask, smaller(query, w.n - 1)),
                  keys_of_query(mask, smaller(query + 8, w.n - 1)), base, unseen);
  }
}

// The same with keys as rows and queries as columns. No query sees a key beyond the end.
template <int N>
__device__ __forceinline__ void mask_queries(float* x, const Samples& samples, const Work& w,
                                             std::int32_t key, std::int32_t base, float unseen) {
  if (w.c == 0 && w.h == w.n && key + 8 < w.n) {
    apply_band<N>(x, key - samples.right, key + samples.left + 1, base, unseen);
  } else {
    const SampleMask mask = mask_of(samples, w);
    const Intervals none{0, 0, 0, 0, 0};
    apply_mask<N>(x, key < w.n ? queries_of_key(mask, key) : none,
                  key + 8 < w.n ? queries_of_key(mask, key + 8) : none, base, unseen);
  }
}

// Multiplies two elements by the slope of SiLU at `before`, two numbers of T.
template <typename T>
__device__ __forceinline__ void multiply_by_slope(float* d, std::uint32_t before) {
  const float2 slopes = kernels::cuda::fast_silu_derivative(unpack<T>(before));
  d[0] *= slopes.x;
  d[1] *= slopes.y;
}

// Where load_matrices and store_matrices find a thread's lines of 16 bytes in 64 rows of a swizzled tile:
// columns of 64 elements that are kColumnBytes apart, 128 bytes a row. Line i is in columns 16 i to 16 i +
// 15, each warp has 16 rows.
template <int kColumnBytes>
struct TileLines {
  int thread = static_cast<int>(opaque(threadIdx.x)) % 128, row = thread / 32 * 16 + thread % 16;
  __device__ __forceinline__ std::uint32_t operator[](int i) const {
    return row * 128 + i / 4 * kColumnBytes + ((i % 4 * 2 + thread % 32 / 16) ^ (row & 7)) * 16;
  }
};

// Multiplies a 64 x N accumulator by the slope of SiLU at such a tile in shared memory, which it replaces by
// the slopes as fp16. `from` is its first row. The slopes are computed in a short loop: unrolled for the
// registers of the accumulator, their instructions take longer to fetch than to execute.
template <typename T, int N, int kColumnBytes>
__device__ __forceinline__ void multiply_by_slopes(float (&d)[N / 2], std::uint32_t from) {
  const int thread = static_cast<int>(opaque(threadIdx.x)) % 128;
#pragma unroll 1
  for (int column = 0; column < N / 64; ++column) {
    const std::uint32_t quad = from + column * kColumnBytes + thread / 32 * (16 * 128) + thread % 32 * 16;
#pragma unroll 2
    for (int i = 0; i < 4; ++i) {
      uint4 x = load_shared_quad(quad + i * 512);
      for (std::uint32_t* pair : {&x.x, &x.y, &x.z, &x.w}) {
        const float2 slopes = kernels::cuda::fast_silu_derivative(unpack<T>(*pair));
        *pair = pack<__half>(slopes.x, slopes.y);
      }
      store_shared_quad(quad + i * 512, x);
    }
  }
  __syncwarp();
  const TileLines<kColumnBytes> lines;
#pragma unroll
  for (int i = 0; i < N / 16; ++i) {
    std::uint32_t pairs[4];
    load_matrices(pairs, from + lines[i]);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const float2 slopes = unpack<__half>(pairs[k]);
      d[8 * i + 2 * k] *= slopes.x;
      d[8 * i + 2 * k + 1] *= slopes.y;
    }
  }
  fence_async_proxy();  // the slot is filled by copies again
}

// Of 32 columns of a row of a wgmma accumulator, lane q = lane % 4 holds columns 8 k + 2 q and the next,
// packed in v[k]. The four lanes exchange them, so that each stores 16 bytes at its `to`, which is 8 q
// columns on.
__device__ __forceinline__ void store_columns(std::uint32_t (&v)[4], void* to, bool stored) {
  const int q = static_cast<int>(threadIdx.x) % 4;
#pragma unroll
  for (int k = 0; k < 4; k += 2) {
    const std::uint32_t got = __shfl_xor_sync(0xffffffffu, (q & 1) ? v[k] : v[k + 1], 1);
    if (q & 1)
      v[k] = got;
    else
      v[k + 1] = got;
  }
#pragma unroll
  for (int k = 0; k < 2; ++k) {
    const std::uint32_t got = __shfl_xor_sync(0xffffffffu, (q & 2) ? v[k] : v[k + 2], 2);
    if (q & 2)
      v[k] = got;
    else
      v[k + 2] = got;
  }
  if (stored) *static_cast<uint4*>(to) = make_uint4(v[0], v[1], v[2], v[3]);
}

// Stores a 64 x N accumulator times `scale` in such a tile. `to` is its first row.
template <typename T, int N, int kColumnBytes>
__device__ __forceinline__ void store_tile(const float (&d)[N / 2], std::uint32_t to, float scale) {
  const TileLines<kColumnBytes> lines;
#pragma unroll
  for (int i = 0; i < N / 16; ++i) {
    const auto two = [&](int e) { return pack<T>(d[8 * i + e] * scale, d[8 * i + e + 1] * scale); };
    store_matrices(to + lines[i], two(0), two(2), two(4), two(6));
  }
}

// Stores a 64 x N accumulator times `scale` in rows of T. `to` is the address of column 8 (lane % 4) of this
// thread's first row; its second row is 8 rows on.
template <typename T, int N>
__device__ __forceinline__ void store_rows(const float (&d)[N / 2], T* to, std::int64_t row_stride,
                                           float scale, bool row_a, bool row_b, int columns) {
  const int q = static_cast<int>(threadIdx.x) % 4;
#pragma unroll
  for (int hf = 0; hf < 2; ++hf) {
#pragma unroll
    for (int g = 0; g < N / 32; ++g) {
      std::uint32_t v[4];
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const int i = 4 * (4 * g + k) + 2 * hf;
        v[k] = pack<T>(d[i] * scale, d[i + 1] * scale);
      }
      store_columns(v, to + hf * 8 * row_stride + 32 * g,
                    (hf == 0 ? row_a : row_b) && 32 * g + 8 * q < columns);
    }
  }
}

}  // namespace hstu::cuda
