// The values of a row in a record, four columns of a lane at a time: in f32, or in bf16 (row_format.h).
#pragma once

#include <cstdint>

#include <cuda_bf16.h>

#include "hstu/device/cuda/random.cuh"
#include "hstu/embedding/cuda/row_kernels.h"

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
// RowFormat::store_update(), of whole rows: columns of part of a row are on the host alone.
struct Bf16Values {
  std::uint16_t* row;
  std::int64_t dim, id, step;
  std::uint64_t key;

  __device__ Quad load(std::int64_t c) const { return load_quad(row, c, dim); }
  __device__ void store(std::int64_t c, const Quad& quad) const {
    std::uint32_t random[4];
    philox(key, static_cast<std::uint64_t>(id),
           (static_cast<std::uint64_t>(step) << 24) + static_cast<std::uint64_t>(c / 8), random);
    const std::uint32_t words[2] = {c % 8 == 0 ? random[0] : random[2], c % 8 == 0 ? random[1] : random[3]};
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
