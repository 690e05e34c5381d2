#include "hstu/ops/elementwise.h"

#include <algorithm>

#include "hstu/ops/op.h"

namespace hstu::ops {
namespace {

bool any_needs_gradient(const std::vector<Variable>& parts) {
  return std::any_of(parts.begin(), parts.end(), [](const Variable& part) { return part.needs_gradient(); });
}

}  // namespace

Variable add(Tape& tape, const Variable& a, const Variable& b) {
  require(a.value().shape() == b.value().shape(), "add: shapes {} and {} differ",
          to_string(a.value().shape()), to_string(b.value().shape()));
  const Tensor y = Tensor::empty(a.value().shape(), a.value().dtype());
  dispatch(y.dtype(), [&]<typename T>() {
    for (std::int64_t i = 0; i < y.size(); ++i)
      y.data<T>()[i] = a.value().data<T>()[i] + b.value().data<T>()[i];
  });
  const Variable result = result_of(tape, y, {a, b});
  tape.record(result, [=](const Tensor& dy) {
    dispatch(dy.dtype(), [&]<typename T>() {
      for (const Variable& to : {a, b}) {
        T* const d = added_gradient(to).data<T>();
        for (std::int64_t i = 0; i < dy.size(); ++i) d[i] += dy.data<T>()[i];
      }
    });
  });
  return result;
}

Variable multiply(Tape& tape, const Variable& a, const Variable& b) {
  require(a.value().shape() == b.value().shape(), "multiply: shapes {} and {} differ",
          to_string(a.value().shape()), to_string(b.value().shape()));
  const Tensor y = Tensor::empty(a.value().shape(), a.value().dtype());
  dispatch(y.dtype(), [&]<typename T>() {
    for (std::int64_t i = 0; i < y.size(); ++i)
      y.data<T>()[i] = a.value().data<T>()[i] * b.value().data<T>()[i];
  });
  const Variable result = result_of(tape, y, {a, b});
  tape.record(result, [=](const Tensor& dy) {
    dispatch(dy.dtype(), [&]<typename T>() {
      const auto add_product = [&](const Variable& to, const Variable& other) {
        T* const d = added_gradient(to).data<T>();
        for (std::int64_t i = 0; i < dy.size(); ++i) d[i] += dy.data<T>()[i] * other.value().data<T>()[i];
      };
      add_product(a, b);
      add_product(b, a);
    });
  });
  return result;
}

Variable concat_columns(Tape& tape, const std::vector<Variable>& parts) {
  const std::int64_t m = parts.front().rows();
  std::int64_t n = 0;
  for (const Variable& part : parts) {
    require(part.rows() == m, "concat_columns: expected {} rows, found {}", m, part.rows());
    n += part.cols();
  }
  const Tensor y = Tensor::empty({m, n}, parts.front().value().dtype());
  dispatch(y.dtype(), [&]<typename T>() {
    std::int64_t at = 0;
    for (const Variable& part : parts) {
      const std::int64_t width = part.cols();
      for (std::int64_t r = 0; r < m; ++r) {
        std::copy_n(part.value().data<T>() + r * width, width, y.data<T>() + r * n + at);
      }
      at += width;
    }
  });
  const Variable result(y, tape.recording() && any_needs_gradient(parts));
  tape.record(result, [=](const Tensor& dy) {
    dispatch(dy.dtype(), [&]<typename T>() {
      std::int64_t at = 0;
      for (const Variable& part : parts) {
        const std::int64_t width = part.cols();
        if (part.needs_gradient()) {
          T* const d = added_gradient(part).data<T>();
          for (std::int64_t r = 0; r < m; ++r) {
            for (std::int64_t c = 0; c < width; ++c) d[r * width + c] += dy.data<T>()[r * n + at + c];
          }
        }
        at += width;
      }
    });
  });
  return result;
}

Variable concat_rows(Tape& tape, const std::vector<Variable>& parts) {
  const std::int64_t n = parts.front().cols();
  std::int64_t m = 0;
  for (const Variable& part : parts) {
    require(part.cols() == n, "concat_rows: expected {} columns, found {}", n, part.cols());
    m += part.rows();
  }
  const Tensor y = Tensor::empty({m, n}, parts.front().value().dtype());
  dispatch(y.dtype(), [&]<typename T>() {
    T* out = y.data<T>();
    for (const Variable& part : parts) out = std::copy_n(part.value().data<T>(), part.value().size(), out);
  });
  const Variable result(y, tape.recording() && any_needs_gradient(parts));
  tape.record(result, [=](const Tensor& dy) {
    dispatch(dy.dtype(), [&]<typename T>() {
      const T* in = dy.data<T>();
      for (const Variable& part : parts) {
        if (part.needs_gradient()) {
          T* const d = added_gradient(part).data<T>();
          for (std::int64_t i = 0; i < part.value().size(); ++i) d[i] += in[i];
        }
        in += part.value().size();
      }
    });
  });
  return result;
}

}  // namespace hstu::ops
