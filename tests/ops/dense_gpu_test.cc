// Layers without a backward pass on a GPU against the host's.
#include <cmath>
#include <optional>

#include "hstu/ops/convert.h"
#include "hstu/ops/dense.h"
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

class DenseOnGpu : public testing::GpuTest {};

// Rows in tiles of 64 and 128 and beyond, parts of k that are equal or not, sizes that other kernels
// compute.
TEST_F(DenseOnGpu, HasTheResultsOfTheHost) {
  using enum ops::Activation;
  for (const DenseCase& c : {DenseCase{1, 64, 64, {}, false}, DenseCase{200, 1024, 128, {}, true},
                             DenseCase{257, 576, 192, gelu, false}, DenseCase{100, 320, 64, silu, true},
                             DenseCase{600, 128, 320, relu, true}, DenseCase{900, 128, 64, gelu, true},
                             DenseCase{30, 48, 40, gelu, true}}) {
    const Tensor expected = dense_of(c, host_context(), DType::f32);
    for (const DType type : {DType::f32, DType::bf16}) {
      const Tensor found = dense_of(c, gpu_, type);
      double error = 0, norm = 0;
      for (std::int64_t i = 0; i < found.size(); ++i) {
        const double x = found.data<float>()[i], y = expected.data<float>()[i];
        error += (x - y) * (x - y), norm += y * y;
      }
      EXPECT_LE(std::sqrt(error), (type == DType::f32 ? 1e-5 : 0.01) * std::sqrt(norm))
          << c.rows << " x " << c.in << " x " << c.out;
    }
  }
}

}  // namespace
}  // namespace hstu
