#include "hstu/tokenizer/rq_ops.h"

#include <vector>

#include "hstu/base/error.h"
#include "hstu/ops/op.h"

namespace hstu {
namespace {

// Calls visit(b, row of the code, r - e) for each row and level in their order.
template <typename T, typename Visit>
void each_residual(const Tensor& z, const Tensor& codebooks, const Tensor& codes, const Visit& visit) {
  const std::int64_t d = z.cols(), levels = codes.cols();
  std::vector<T> left(static_cast<std::size_t>(d));
  for (std::int64_t b = 0; b < z.rows(); ++b) {
    std::copy_n(z.data<T>() + b * d, d, left.begin());
    for (std::int64_t l = 0; l < levels; ++l) {
      const std::int64_t row = codes.data<std::int32_t>()[b * levels + l];
      require(row >= 0 && row < codebooks.rows(), "a code beyond the codebooks");
      for (std::int64_t c = 0; c < d; ++c)
        left[static_cast<std::size_t>(c)] -= codebooks.data<T>()[row * d + c];
      visit(b, row, left);
    }
  }
}

Tensor scalar(DType type, double value) {
  Tensor tensor = Tensor::empty({1}, type);
  with_float_type(type, [&]<typename T>() { *tensor.mutable_data<T>() = static_cast<T>(value); });
  return tensor;
}

// dx[i] (+)= slope(i)
template <typename T, typename Slope>
void write_gradient(const kernels::Gradient<T>& dx, std::int64_t n, const Slope& slope) {
  if (dx.to == nullptr) return;
  for (std::int64_t i = 0; i < n; ++i) dx.to[i] = (dx.accumulate ? dx.to[i] : T(0)) + slope(i);
}

}  // namespace

Variable straight_through(Tape& tape, const Variable& z, const Tensor& quantised) {
  require(quantised.shape() == z.value().shape(), "straight_through: shapes differ");
  return tape.record(quantised, {z}, [=, context = tape.context()](const Tensor& dy) {
    with_float_type(dy.dtype(), [&]<typename T>() { ops::pass_on<T>(dy, z, context, HostStream{}); });
  });
}

Variable quantisation_loss(Tape& tape, const Variable& z, const Variable& codebooks, const Tensor& codes,
                           double commitment, double factor) {
  require(codes.rows() == z.rows() && codebooks.cols() == z.cols(), "quantisation_loss: shapes differ");
  const DType type = z.value().dtype();
  double sum = 0;
  with_float_type(type, [&]<typename T>() {
    each_residual<T>(z.value(), codebooks.value(), codes,
                     [&](std::int64_t, std::int64_t, const std::vector<T>& left) {
                       for (const T x : left) sum += static_cast<double>(x) * static_cast<double>(x);
                     });
  });
  const auto backward = [=, context = tape.context()](const Tensor& dloss) {
    with_float_type(type, [&]<typename T>() {
      const double slope = 2 * factor * static_cast<double>(*dloss.data<T>());
      std::vector<T> dz(static_cast<std::size_t>(z.value().size()), T(0)),
          de(static_cast<std::size_t>(codebooks.value().size()), T(0));
      const std::int64_t d = z.cols();
      each_residual<T>(z.value(), codebooks.value(), codes,
                       [&](std::int64_t b, std::int64_t row, const std::vector<T>& left) {
                         for (std::int64_t c = 0; c < d; ++c) {
                           const T by = static_cast<T>(slope) * left[static_cast<std::size_t>(c)];
                           dz[static_cast<std::size_t>(b * d + c)] += static_cast<T>(commitment) * by;
                           de[static_cast<std::size_t>(row * d + c)] -= by;
                         }
                       });
      write_gradient(ops::gradient_of<T>(z, context), std::ssize(dz),
                     [&](std::int64_t i) { return dz[static_cast<std::size_t>(i)]; });
      write_gradient(ops::gradient_of<T>(codebooks, context), std::ssize(de),
                     [&](std::int64_t i) { return de[static_cast<std::size_t>(i)]; });
    });
  };
  return tape.record(scalar(type, factor * (1 + commitment) * sum), {z, codebooks}, backward);
}

Variable squared_error(Tape& tape, const Variable& y, const Tensor& x, double factor) {
  require(x.shape() == y.value().shape(), "squared_error: shapes differ");
  const DType type = x.dtype();
  double sum = 0;
  with_float_type(type, [&]<typename T>() {
    for (std::int64_t i = 0; i < x.size(); ++i) {
      const double by = static_cast<double>(y.value().data<T>()[i] - x.data<T>()[i]);
      sum += by * by;
    }
  });
  return tape.record(scalar(type, factor * sum), {y}, [=, context = tape.context()](const Tensor& dloss) {
    with_float_type(type, [&]<typename T>() {
      const T slope = static_cast<T>(2 * factor) * *dloss.data<T>();
      write_gradient(ops::gradient_of<T>(y, context), x.size(),
                     [&](std::int64_t i) { return slope * (y.value().data<T>()[i] - x.data<T>()[i]); });
    });
  });
}

}  // namespace hstu
