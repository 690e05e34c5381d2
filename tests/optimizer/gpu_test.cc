// The dense optimizer and the norm of gradients on a GPU against the host's.
#include <cmath>

#include <gtest/gtest.h>

#include "hstu/optimizer/clipping.h"
#include "hstu/optimizer/dense_optimizer.h"
#include "hstu/optimizer/update_check.h"
#include "optimizer/support.h"

namespace hstu {
namespace {

using namespace testing_optimizer;

// More parameters than one launch takes, some of several chunks, one empty.
constexpr int kParameters = 150;
std::int64_t size_of_parameter(int i) {
  return i % 50 == 0 ? 40'000 + i : i == 7 ? 0 : 3 * i;
}

TEST(OptimizerOnGpu, UpdatesAndNormsAreTheHosts) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU";
  const Context gpu = make_context(Device::cuda(0));
  Parameters on_host, on_gpu;
  for (int i = 0; i < kParameters; ++i) {
    const auto values = random_values(size_of_parameter(i), static_cast<std::uint64_t>(i));
    for (Parameters* parameters : {&on_host, &on_gpu}) parameters->add(fmt::format("p{}", i), values);
  }
  for (Parameter* p : on_gpu.list()) p->value = p->value.copy(gpu), p->gradient = p->gradient.copy(gpu);
  DenseOptimizer host(on_host.list(), {}), there(on_gpu.list(), {}, gpu);
  for (std::uint64_t step = 0; step < 3; ++step) {
    for (std::size_t i = 0; i < kParameters; ++i) {
      Parameter& p = *on_host.list()[i];
      set_gradient(p, random_values(p.value.size(), 1000 * step + i));
      on_gpu.list()[i]->gradient.copy_from(p.gradient, gpu.stream);
    }
    const double norm = GradientSquares(on_host.list(), host_context()).norm();
    EXPECT_NEAR(GradientSquares(on_gpu.list(), gpu).norm(), norm, 1e-12 * norm);
    host.step(0.01, 0.5);
    there.step(0.01, 0.5);
  }
  for (std::size_t i = 0; i < kParameters; ++i) {
    const auto expected = values_of(on_host.list()[i]->value),
               found = values_of(on_gpu.list()[i]->value.to_host(gpu.stream));
    for (std::size_t k = 0; k < expected.size(); ++k)
      ASSERT_NEAR(found[k], expected[k], 2e-6) << "parameter " << i << ", element " << k;
  }
}

TEST(OptimizerOnGpu, NamesTheGradientThatIsNotFinite) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU";
  const Context gpu = make_context(Device::cuda(0));
  Parameters parameters;
  for (int i = 0; i < kParameters; ++i)
    parameters.add(fmt::format("p{}", i), random_values(size_of_parameter(i), 1));
  Tensor& gradient = parameters.list()[149]->gradient;
  gradient.mutable_data<float>()[gradient.size() - 1] = INFINITY;
  for (Parameter* p : parameters.list()) p->gradient = p->gradient.copy(gpu);
  EXPECT_EQ(GradientSquares(parameters.list(), gpu).first_bad(), "p149");
}

// Trap: a number that is not finite reaches the parameters because the host has queued the update already.
TEST(OptimizerOnGpu, AGpuRefusesUpdatesUntilTheHostKnows) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU";
  const Context gpu = make_context(Device::cuda(0));
  Parameters parameters;
  for (int i = 0; i < 3; ++i) set_gradient(parameters.add(fmt::format("p{}", i), {1, 2, 3, 4}), {4, 3, 2, 1});
  for (Parameter* p : parameters.list()) p->value = p->value.copy(gpu), p->gradient = p->gradient.copy(gpu);
  DenseOptimizer optimizer(parameters.list(), {.kind = DenseOptimizerKind::sgd}, gpu);
  UpdateCheck check(gpu);
  double norm = 0;
  // The first parameter after an update by gradients, another list of numbers and a loss.
  const auto updated = [&](float other, float loss, bool expected) {
    const Tensor also = Tensor::from<float>({2}, {1, other}).copy(gpu);
    const GradientSquares squares(parameters.list(), gpu, {also});
    const UpdateOutcome outcome = check.judge(squares, Tensor::from<float>({1}, {loss}).copy(gpu), 1.0);
    optimizer.step(0.5, check.factor());
    EXPECT_EQ(outcome.is_updated(), expected);
    EXPECT_EQ(squares.norm(), norm = outcome.gradient_norm()) << "of parameters alone";
    return values_of(parameters.list().front()->value.to_host(gpu.stream));
  };
  const auto scale = static_cast<float>(clip_scale(std::sqrt(90.0), 1.0));
  const std::vector<float> once{1 - 0.5f * (scale * 4), 2 - 0.5f * (scale * 3), 3 - 0.5f * (scale * 2),
                                4 - 0.5f * scale};
  const std::vector<float> first = updated(5, 0.25f, true);
  EXPECT_EQ(norm, std::sqrt(90.0));
  for (std::size_t i = 0; i < 4; ++i) EXPECT_FLOAT_EQ(first[i], once[i]);
  EXPECT_EQ(updated(INFINITY, 0.25f, false), first);
  EXPECT_EQ(updated(5, 0.25f, false), first) << "a step that was queued before the host knew";
  check.reset();
  EXPECT_NE(updated(5, 0.25f, true), first);
  const std::vector<float> second = values_of(parameters.list().front()->value.to_host(gpu.stream));
  EXPECT_EQ(updated(5, NAN, false), second);
}

}  // namespace
}  // namespace hstu
