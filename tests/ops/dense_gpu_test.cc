// Layers without a backward pass on a GPU against the host's.
#include <cmath>
#include <optional>
#include <vector>

#include "hstu/ops/convert.h"
#include "hstu/ops/dense.h"
#include "hstu/ops/linear.h"
#include "support/gpu_test.h"
#include "support/op_cases.h"

namespace hstu {
namespace {

using testing::random_tensor;

struct DenseCase {
  std::int64_t rows, in, out;
  std::optional<ops::Activation> activation;
  bool residual;
};

Tensor dense_of(const DenseCase& c, const Context& context, DType type) {
  Tape tape(context, false);
  const auto in = [&](const Shape& shape, std::uint64_t seed) {
    return ops::convert(tape, Variable::constant(random_tensor(shape, DType::f32, seed).copy(context)), type);
  };
  const Variable bias = Variable::constant(random_tensor({c.out}, DType::f32, 3).copy(context));
  const Variable y = ops::dense(tape, in({c.rows, c.in}, 1), in({c.in, c.out}, 2), bias, c.activation,
                                c.residual ? in({c.rows, c.out}, 4) : Variable());
  return ops::convert(tape, y, DType::f32).value().to_host(context.stream);
}

double relative_error(const Tensor& found, const Tensor& expected) {
  double error = 0, norm = 0;
  for (std::int64_t i = 0; i < found.size(); ++i) {
    const double x = found.data<float>()[i], y = expected.data<float>()[i];
    error += (x - y) * (x - y), norm += y * y;
  }
  return std::sqrt(error / norm);
}

// Some columns of a weight, SiLU of some of the result, and a product with a residual behind them.
std::vector<Tensor> products_of(std::int64_t rows, const std::vector<ColumnRange>& columns,
                                const Context& context, DType type) {
  constexpr std::int64_t kIn = 192, kColumns = 1024, kWidth = 512;
  Tape tape(context, false);
  const auto in = [&](const Shape& shape, std::uint64_t seed) {
    return ops::convert(tape, Variable::constant(random_tensor(shape, DType::f32, seed).copy(context)), type);
  };
  const auto bias = [&](std::int64_t width) {
    return Variable::constant(random_tensor({width}, DType::f32, 3).copy(context));
  };
  const ops::LinearSilu silu =
      ops::linear_silu(tape, in({rows, kIn}, 1), in({kIn, kColumns}, 2), bias(kColumns), columns, kWidth / 2);
  const Variable sum = ops::linear_residual(tape, silu.y, in({kWidth, kWidth}, 4), bias(kWidth), silu.y);
  std::vector<Tensor> results;
  for (const Variable& y : {silu.y, silu.activated, sum})
    results.push_back(ops::convert(tape, y, DType::f32).value().to_host(context.stream));
  return results;
}

class DenseOnGpu : public testing::GpuTest {};

// Rows in tiles of 64 and 128 and beyond, parts of k that are equal or not, sizes that other kernels
// compute.
TEST_F(DenseOnGpu, HasTheResultsOfTheHost) {
  using enum ops::Activation;
  for (const DenseCase& c : {DenseCase{1, 64, 64, {}, false}, DenseCase{200, 1024, 128, {}, true},
                             DenseCase{90, 2048, 64, {}, true}, DenseCase{70, 1024, 4096, silu, false},
                             DenseCase{257, 576, 192, gelu, false}, DenseCase{100, 320, 64, silu, true},
                             DenseCase{600, 128, 320, relu, true}, DenseCase{900, 128, 64, gelu, true},
                             DenseCase{30, 48, 40, gelu, true}}) {
    const Tensor expected = dense_of(c, host_context(), DType::f32);
    for (const DType type : {DType::f32, DType::bf16}) {
      const Tensor found = dense_of(c, gpu_, type);
      EXPECT_LE(relative_error(found, expected), type == DType::f32 ? 1e-5 : 0.01)
          << c.rows << " x " << c.in << " x " << c.out;
    }
  }
}

// Few rows, many, and many of which the last ones are few rows beside whole rounds of tiles.
TEST_F(DenseOnGpu, HasTheColumnsOfProductsOfAForwardPass) {
  for (const std::int64_t rows : {100, 5000, 66 * 128 + 30})
    for (const std::vector<ColumnRange>& columns :
         {std::vector<ColumnRange>{{256, 768}}, {{0, 256}, {512, 768}}, {{128, 256}, {512, 896}}}) {
      const std::vector<Tensor> expected = products_of(rows, columns, host_context(), DType::f32),
                                found = products_of(rows, columns, gpu_, DType::bf16);
      for (std::size_t i = 0; i < found.size(); ++i)
        EXPECT_LE(relative_error(found[i], expected[i]), 0.01)
            << rows << " rows from column " << columns[0].begin << ", result " << i;
    }
}

}  // namespace
}  // namespace hstu
