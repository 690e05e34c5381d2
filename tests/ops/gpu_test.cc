// Every op on a GPU against its CPU form. The CPU form in double is the truth; the error that the CPU form
// has in float is what the GPU may have, several times over because it adds in another order.
#include <algorithm>
#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "support/op_cases.h"

namespace hstu {
namespace {

using testing::CaseSize;
using testing::OpCase;

// The result, then the gradients of the inputs, on the host. Every input is used `uses` times.
std::vector<Tensor> run(const OpCase& c, DType type, const Context& context, int uses) {
  std::vector<Variable> inputs;
  for (const Tensor& input : c.inputs) {
    Tensor same = Tensor::empty(input.shape(), type);
    with_float_type(
        type, [&]<typename T>() { std::copy_n(input.data<float>(), input.size(), same.mutable_data<T>()); });
    inputs.emplace_back(same.copy(context));
  }
  Tape tape(context);
  Variable y = c.run(tape, inputs);
  for (int use = 1; use < uses; ++use) y = ops::add(tape, y, c.run(tape, inputs));
  const Tensor dy = testing::random_tensor(y.value().shape(), DType::f32, 99);
  Tensor same = Tensor::empty(dy.shape(), type);
  with_float_type(type,
                  [&]<typename T>() { std::copy_n(dy.data<float>(), dy.size(), same.mutable_data<T>()); });
  tape.backward(y, same);
  std::vector<Tensor> results{y.value().to_host(context.stream)};
  for (const Variable& input : inputs) results.push_back(input.gradient().to_host(context.stream));
  return results;
}

struct Error {
  double most = 0, largest = 0;  // difference; element of the truth
};
Error error_of(const Tensor& found, const Tensor& truth) {
  Error error;
  for (std::int64_t i = 0; i < truth.size(); ++i) {
    const double expected = truth.data<double>()[i], difference = found.data<float>()[i] - expected;
    error.most = std::isnan(difference) ? INFINITY : std::max(error.most, std::abs(difference));
    error.largest = std::max(error.largest, std::abs(expected));
  }
  return error;
}

void expect_as_good_as_the_host(const CaseSize& size, int uses) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU";
  const Context gpu = make_context(Device::cuda(0));
  const std::vector<OpCase> exact = testing::op_cases(DType::f64, size),
                            host = testing::op_cases(DType::f32, size),
                            device = testing::op_cases(DType::f32, size, gpu);
  for (std::size_t c = 0; c < host.size(); ++c) {
    // The same inputs for all three: those in float.
    const OpCase in_double{exact[c].name, host[c].inputs, exact[c].run};
    const auto truth = run(in_double, DType::f64, host_context(), uses),
               expected = run(host[c], DType::f32, host_context(), uses),
               found = run(device[c], DType::f32, gpu, uses);
    for (std::size_t i = 0; i < truth.size(); ++i) {
      const Error of_host = error_of(expected[i], truth[i]), of_gpu = error_of(found[i], truth[i]);
      EXPECT_LE(of_gpu.most, 4 * of_host.most + 1e-6 * (of_host.largest + 1e-30))
          << host[c].name << (i == 0 ? ": result" : ": gradient of input ") << i;
    }
    const auto again = run(device[c], DType::f32, gpu, uses);
    for (std::size_t i = 0; i < truth.size(); ++i)
      EXPECT_EQ(std::memcmp(found[i].raw(), again[i].raw(), found[i].bytes()), 0)
          << host[c].name << " differs";
  }
}

TEST(OpsOnGpu, AgreeAtRaggedSizes) {
  expect_as_good_as_the_host({}, 1);
}
TEST(OpsOnGpu, AddToGradientsOfASecondUse) {
  expect_as_good_as_the_host({}, 2);
}
TEST(OpsOnGpu, AgreeAtTheSizesOfAStep) {
  expect_as_good_as_the_host(
      {.samples = 40, .tokens_per_sample = 150, .width = 64, .hidden = 256, .heads = 2, .head_dim = 32}, 1);
}
TEST(OpsOnGpu, AgreeAtWidthsThatNoTileDivides) {
  expect_as_good_as_the_host(
      {.samples = 33, .tokens_per_sample = 67, .width = 77, .hidden = 131, .heads = 3, .head_dim = 20}, 1);
}

}  // namespace
}  // namespace hstu
