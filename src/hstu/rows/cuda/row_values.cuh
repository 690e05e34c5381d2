// The values of a row in a record, four columns of a lane at a time: in f32, or in bf16 (row_format.h).
#pragma once

#include <cstdint>

#include <cuda_bf16.h>

#include "hstu/device/cuda/random.cuh"
#include "hstu/rows/cuda/row_kernels.h"

namespace hstu::cuda {

// Columns c to c + 3; those beyond `dim` are 0. What begins a row or a state is aligned to 16 bytes where dim
// is a multiple of 4.
struct Quad {
  float x[4];
};
__device__ inline Quad load_quad(const float* from, std::int64_t c, std::int64_t dim) {
  if (dim % 4 == 0) {
    const float4 v = *reinterpret_cast<const float4*>(from + c);
    return {v.x, v.y, v.z, v.w};
  }
  Quad quad;
#pragma unroll
  for (int i = 0; i < 4; ++i) quad.x[i] = c + i < dim ? from[c + i] : 0.0f;
  return quad;
}
__device__ inline void store_quad(float* to, std::int64_t c, std::int64_t dim, const Quad& quad) {
  if (dim % 4 == 0) {
    *reinterpret_cast<float4*>(to + c) = {quad.x[0], quad.x[1], quad.x[2], quad.x[3]};
    return;
  }
#pragma unroll
  for (int i = 0; i < 4; ++i)
    if (c + i < dim) to[c + i] = quad.x[i];
}

// The bits of four bf16.
struct HalfQuad {
  std::uint16_t x[4];
};
__device__ inline Quad load_quad(const std::uint16_t* from, std::int64_t c, std::int64_t dim) {
  HalfQuad bits{};
  if (dim % 4 == 0) {
    const uint2 v = *reinterpret_cast<const uint2*>(from + c);
    bits = {static_cast<std::uint16_t>(v.x), static_cast<std::uint16_t>(v.x >> 16),
            static_cast<std::uint16_t>(v.y), static_cast<std::uint16_t>(v.y >> 16)};
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (c + i < dim) bits.x[i] = from[c + i];
  }
  Quad quad;
#pragma unroll
  for (int i = 0; i < 4; ++i) quad.x[i] = __uint_as_float(static_cast<std::uint32_t>(bits.x[i]) << 16);
  return quad;
}
__device__ inline void store_quad(std::uint16_t* to, std::int64_t c, std::int64_t dim, const HalfQuad& bits) {
  if (dim % 4 == 0) {
    *reinterpret_cast<uint2*>(to + c) = {bits.x[0] | static_cast<std::uint32_t>(bits.x[1]) << 16,
                                         bits.x[2] | static_cast<std::uint32_t>(bits.x[3]) << 16};
    return;
  }
#pragma unroll
  for (int i = 0; i < 4; ++i)
    if (c + i < dim) to[c + i] = bits.x[i];
}
__device__ inline std::uint16_t nearest_bf16(float x) {
  return __bfloat16_as_ushort(__float2bfloat16_rn(x));
}

// The values that an update changes.
struct F32Values {
  float* row;
  std::int64_t dim;

  __device__ Quad load(std::int64_t c) const { return load_quad(row, c, dim); }
  __device__ void store(std::int64_t c, const Quad& quad) const { store_quad(row, c, dim, quad); }
};
// Words `first` to `first + n - 1`, n <= 4, of the draws philox(key, id, counter), philox(key, id, counter +
// 1), ... The columns of part of a row may begin at any word of a draw.
__device__ inline void random_words(std::uint64_t key, std::int64_t id, std::uint64_t counter,
                                    std::int64_t first, int n, std::uint32_t (&words)[4]) {
  const auto shift = static_cast<int>(first % 4);
  counter += static_cast<std::uint64_t>(first / 4);
  philox(key, static_cast<std::uint64_t>(id), counter, words);
  std::uint32_t next[4] = {};
  if (shift + n > 4) philox(key, static_cast<std::uint64_t>(id), counter + 1, next);
#pragma unroll
  for (int i = 0; i < 3; ++i)
    if (i < shift) words[0] = words[1], words[1] = words[2], words[2] = words[3], words[3] = next[i];
}

// RowFormat::store_update().
struct Bf16Values {
  std::uint16_t* row;
  std::int64_t dim, first_column, id, step;
  std::uint64_t key;

  __device__ Quad load(std::int64_t c) const { return load_quad(row, c, dim); }
  __device__ void store(std::int64_t c, const Quad& quad) const {
    const std::int64_t column = first_column + c;
    const bool is_odd = column % 2 != 0;
    std::uint32_t words[4];
    random_words(key, id, static_cast<std::uint64_t>(step) << 24, column / 2, is_odd ? 3 : 2, words);
    if (is_odd) {  // the first column has the high half of its word
      words[0] = __funnelshift_r(words[0], words[1], 16);
      words[1] = __funnelshift_r(words[1], words[2], 16);
    }
    HalfQuad bits;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const std::uint32_t word = words[i / 2], half = i % 2 == 0 ? word & 0xffffu : word >> 16;
      bits.x[i] = isfinite(quad.x[i]) ? static_cast<std::uint16_t>((__float_as_uint(quad.x[i]) + half) >> 16)
                                      : nearest_bf16(quad.x[i]);
    }
    store_quad(row, c, dim, bits);
  }
};

// At the beginning of a stored row.
__device__ inline Quad load_values(const RowTable& t, const float* row, std::int64_t c) {
  if (t.is_bf16) return load_quad(reinterpret_cast<const std::uint16_t*>(row), c, t.dim);
  return load_quad(row, c, t.dim);
}
// bf16: to the nearest.
__device__ inline void store_values(const RowTable& t, float* row, std::int64_t c, const Quad& quad) {
  if (!t.is_bf16) return store_quad(row, c, t.dim, quad);
  HalfQuad bits;
#pragma unroll
  for (int i = 0; i < 4; ++i) bits.x[i] = nearest_bf16(quad.x[i]);
  store_quad(reinterpret_cast<std::uint16_t*>(row), c, t.dim, bits);
}

}  // namespace hstu::cuda
