#pragma once
#include "hstu/ops/action_rows.h"
#include "hstu/ops/gather_sum.h"
#include "hstu/ops/op.h"
namespace hstu {
inline ops::RowIndex as_index(const Tensor& t) {
  if (!t.defined()) return nullptr;
  return ops::row_index({t.data<std::int32_t>(), t.data<std::int32_t>() + t.size()});
}
inline std::vector<std::uint8_t> as_bytes(const Tensor& t) { return {t.data<std::uint8_t>(), t.data<std::uint8_t>() + t.size()}; }
inline std::vector<float> as_floats(const Tensor& t) { return {t.data<float>(), t.data<float>() + t.size()}; }
}
namespace hstu::ops {
inline Tensor cast(Tape&, const Tensor& x, DType type) {
  Tensor y = Tensor::empty(x.shape(), type);
  dispatch(type, [&]<typename T>() { for (std::int64_t i = 0; i < x.size(); ++i) y.mutable_data<T>()[i] = static_cast<T>(x.data<double>()[i]); });
  return y;
}
}
