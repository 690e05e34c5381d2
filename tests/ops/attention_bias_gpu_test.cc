// The gradients of the tables of a relative bias on a GPU are those of the host, so that models train with
// it.
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "hstu/ops/attention.h"
#include "support/gpu_test.h"
#include "support/op_cases.h"

namespace hstu {
namespace {

class AttentionBiasOfModelsOnGpu : public testing::GpuTest {
 protected:
  // The gradients of both tables, of two layers that share them.
  std::vector<Tensor> table_gradients(const Context& context) const {
    constexpr std::int64_t kTokens = 90, kWidth = 64;
    const std::vector<std::int64_t> offsets{0, 50, 50, 90}, thresholds{2, 30, 500};
    std::vector<std::int64_t> times(kTokens);
    for (std::size_t t = 1; t < times.size(); ++t)
      times[t] = times[t - 1] + static_cast<std::int64_t>(t % 17);
    const auto leaf = [&](Shape shape, int seed) {
      return Variable(testing::random_tensor(shape, DType::f32, seed).copy(context));
    };
    const auto list = [&](const std::vector<std::int64_t>& values) {
      return Tensor::from({std::ssize(values)}, values).copy(context);
    };
    const Variable q = leaf({kTokens, kWidth}, 1), k = leaf({kTokens, kWidth}, 2),
                   v = leaf({kTokens, kWidth}, 3), position = leaf({1, 2 * 60 - 1}, 4),
                   time = leaf({1, 4}, 5);
    ops::AttentionShape shape;
    shape.heads = 2, shape.head_dim = 32, shape.alpha = 0.2, shape.scale = 0.1, shape.offsets = list(offsets);
    shape.bias = {position, time, list(thresholds), list(times), list(times)};
    Tape tape(context);
    const Variable first = ops::attention(tape, q, k, v, shape), o = ops::attention(tape, first, k, v, shape);
    tape.backward(o, testing::random_tensor({kTokens, kWidth}, DType::f32, 6).copy(context));
    return {position.gradient(), time.gradient()};
  }
};

TEST_F(AttentionBiasOfModelsOnGpu, TablesGetTheGradientsOfTheHost) {
  const std::vector<Tensor> host = table_gradients(host_context()), gpu = table_gradients(gpu_);
  for (std::size_t table = 0; table < host.size(); ++table) {
    const Tensor found = gpu[table].to_host(gpu_.stream);
    double error = 0, norm = 0;
    for (std::int64_t i = 0; i < found.size(); ++i) {
      const double expected = host[table].data<float>()[i], difference = found.data<float>()[i] - expected;
      error += difference * difference, norm += expected * expected;
    }
    EXPECT_GT(norm, 0) << table;
    EXPECT_LE(std::sqrt(error), 1e-5 * std::sqrt(norm)) << table;
  }
}

}  // namespace
}  // namespace hstu
