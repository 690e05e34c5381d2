// Maps through which the tensor copy engine of Hopper addresses memory.
#pragma once

#include <cstdint>
#include <span>

#include <cuda.h>

namespace hstu::cuda {

// Elements of 2 bytes in columns of 64 (128 bytes), which arrive in shared memory in the 128-byte swizzle.
// `sizes` and `box` are in elements, the innermost dimension first; `strides` are in bytes, of all dimensions
// but the innermost, multiples of 16. What a box has beyond the sizes is read as zero and not written. Fails
// with an Error that lists the sizes if the driver refuses the map.
CUtensorMap tensor_map(CUtensorMapDataType type, const void* base, std::span<const cuuint64_t> sizes,
                       std::span<const cuuint64_t> strides, std::span<const cuuint32_t> box);

// A row-major matrix of bf16 (rows, columns) with `stride` elements from one row to the next, in boxes of
// 64 columns and `box_rows` rows, at most 256.
CUtensorMap matrix_map(const void* data, std::int64_t rows, std::int64_t columns, std::int64_t stride,
                       int box_rows);

}  // namespace hstu::cuda
