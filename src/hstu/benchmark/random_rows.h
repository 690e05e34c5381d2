// Rows of normal numbers for benchmarks, made where they are needed.
#pragma once

#include "hstu/base/random.h"
#include "hstu/tensor/tensor.h"

#ifdef HSTU_WITH_CUDA
#include "hstu/benchmark/cuda/fill_normal.h"
#endif

namespace hstu {

// (n, width) f32 on the device of the context.
inline Tensor random_rows(std::int64_t n, std::int64_t width, const Context& context) {
  Tensor rows = Tensor::empty({n, width}, DType::f32, context);
#ifdef HSTU_WITH_CUDA
  if (!context.device().is_host()) {
    fill_normal(AttentionType::fp32, rows.mutable_data<float>(), rows.size(), context.stream.cuda());
    return rows;
  }
#endif
  RandomStream random{1};
  for (std::int64_t i = 0; i < rows.size(); ++i)
    rows.mutable_data<float>()[i] = static_cast<float>(random.normal());
  return rows;
}

}  // namespace hstu
