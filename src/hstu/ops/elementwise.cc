#include "hstu/ops/elementwise.h"

#include <algorithm>

#include "hstu/ops/op.h"

namespace hstu::ops {
namespace {

constexpr std::int64_t kRows = 512;  // rows that one task copies

}  // namespace

Variable add(Tape& tape, const Variable& a, const Variable& b) {
  require(a.value().shape() == b.value().shape(), "add: shapes {} and {} differ",
          to_string(a.value().shape()), to_string(b.value().shape()));
  Tensor y = Tensor::empty(a.value().shape(), a.value().dtype());
  dispatch(y.dtype(), [&]<typename T>() {
    const T* const left = a.value().data<T>();
    const T* const right = b.value().data<T>();
    T* const out = y.mutable_data<T>();
    for_elements(y.size(), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) out[i] = left[i] + right[i];
    });
  });
  return tape.record(y, {a, b}, [=](Tensor& dy) {
    dispatch(dy.dtype(), [&]<typename T>() {
      pass_gradient(dy.data<T>(), a);
      pass_gradient(dy.data<T>(), b);
    });
  });
}

Variable multiply(Tape& tape, const Variable& a, const Variable& b) {
  require(a.value().shape() == b.value().shape(), "multiply: shapes {} and {} differ",
          to_string(a.value().shape()), to_string(b.value().shape()));
  Tensor y = Tensor::empty(a.value().shape(), a.value().dtype());
  dispatch(y.dtype(), [&]<typename T>() {
    const T* const left = a.value().data<T>();
    const T* const right = b.value().data<T>();
    T* const out = y.mutable_data<T>();
    for_elements(y.size(), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) out[i] = left[i] * right[i];
    });
  });
  return tape.record(y, {a, b}, [=](Tensor& dy) {
    dispatch(dy.dtype(), [&]<typename T>() {
      const auto add_product = [&](const Variable& to, const T* other) {
        const T* const in = dy.data<T>();
        T* const out = added_gradient(to).mutable_data<T>();
        for_elements(dy.size(), [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t i = begin; i < end; ++i) out[i] += in[i] * other[i];
        });
      };
      add_product(a, b.value().data<T>());
      add_product(b, a.value().data<T>());
    });
  });
}

Variable concat_columns(Tape& tape, const std::vector<Variable>& parts) {
  const std::int64_t m = parts.front().rows();
  std::int64_t n = 0;
  for (const Variable& part : parts) {
    require(part.rows() == m, "concat_columns: expected {} rows, found {}", m, part.rows());
    n += part.cols();
  }
  Tensor y = Tensor::empty({m, n}, parts.front().value().dtype());
  dispatch(y.dtype(), [&]<typename T>() {
    T* out = y.mutable_data<T>();
    for (const Variable& part : parts) {
      const std::int64_t width = part.cols();
      const T* const in = part.value().data<T>();
      parallel_blocks(m, kRows, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end; ++r) std::copy_n(in + r * width, width, out + r * n);
      });
      out += width;
    }
  });
  return tape.record(y, parts, [=](Tensor& dy) {
    dispatch(dy.dtype(), [&]<typename T>() {
      const T* in = dy.data<T>();
      for (const Variable& part : parts) {
        const std::int64_t width = part.cols();
        if (part.needs_gradient()) {
          T* const out = added_gradient(part).mutable_data<T>();
          parallel_blocks(m, kRows, [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t r = begin; r < end; ++r) {
              for (std::int64_t c = 0; c < width; ++c) out[r * width + c] += in[r * n + c];
            }
          });
        }
        in += width;
      }
    });
  });
}

Variable concat_rows(Tape& tape, const std::vector<Variable>& parts) {
  const std::int64_t n = parts.front().cols();
  std::int64_t m = 0;
  for (const Variable& part : parts) {
    require(part.cols() == n, "concat_rows: expected {} columns, found {}", n, part.cols());
    m += part.rows();
  }
  Tensor y = Tensor::empty({m, n}, parts.front().value().dtype());
  dispatch(y.dtype(), [&]<typename T>() {
    T* out = y.mutable_data<T>();
    for (const Variable& part : parts) out = std::copy_n(part.value().data<T>(), part.value().size(), out);
  });
  return tape.record(y, parts, [=](Tensor& dy) {
    dispatch(dy.dtype(), [&]<typename T>() {
      const T* in = dy.data<T>();
      for (const Variable& part : parts) {
        pass_gradient(in, part);
        in += part.value().size();
      }
    });
  });
}

}  // namespace hstu::ops
