// The first row of tensors that has a value that is not finite.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "hstu/tensor/tensor.h"

namespace hstu {

struct NotFiniteRow {
  std::size_t list = 0;
  std::int64_t row = 0;
};
// Of rows[i] (n, D) f32 on the context's device, or undefined. Waits for the stream.
std::optional<NotFiniteRow> first_not_finite(std::span<const Tensor> rows, const Context& context);

namespace cuda {
// The same on a GPU. Throws Error in a build without CUDA.
std::optional<NotFiniteRow> first_not_finite(std::span<const Tensor> rows, const Context& context);
}  // namespace cuda

}  // namespace hstu
