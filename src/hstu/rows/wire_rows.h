// Rows of tables in a GPU's memory on their way to other ranks and back: in another order and in another
// type.
#pragma once

#include <cstdint>
#include <span>

#include "hstu/tensor/tensor.h"

namespace hstu {

struct WireRows {
  Tensor rows;    // (n, D) f32
  Tensor places;  // (m) i32, each once: row places[i] travels as row i; undefined: all, in their order
  Tensor wire;    // (m, C) f32, bf16 or f16, one type for all lists
  std::int64_t first_column = 0;  // columns first_column .. first_column + C - 1 of the rows travel
};

// rows (n, D) f32 -> narrow (n, D) bf16, to nearest, on the context's device.
void narrow(const Tensor& rows, Tensor& narrow, const Context& context);

// All put their work on the stream: one launch for all lists. All throw Error in a build without CUDA.
namespace cuda {

// rows -> wire. Values are rounded to nearest; beyond (1) i64: adds the number of finite values that the type
// of the wire cannot hold, which become infinite there.
void to_wire(std::span<const WireRows> lists, Tensor beyond, const Stream& stream);
// wire -> rows
void from_wire(std::span<const WireRows> lists, const Stream& stream);

}  // namespace cuda
}  // namespace hstu
