// Losses over drawn items and over pools on a GPU against their CPU form in double, from the same numbers.
#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "hstu/loss/pooled_softmax.h"
#include "hstu/loss/sampled_softmax.h"
#include "support/gpu_test.h"
#include "support/op_cases.h"

namespace hstu::testing_losses_gpu {
namespace {

using testing::random_tensor;

constexpr std::int64_t kPositions = 300, kNegatives = 40, kRows = 150, kWidth = 50;

// What a loss reads beside vectors and rows, where the context is.
using Loss = std::function<Variable(Tape&, const Variable& vectors, const Variable& rows)>;

struct Outcome {
  std::vector<double> loss, dvectors, drows;
};

std::vector<double> doubles_of(const Tensor& x, const Context& context) {
  const Tensor host = x.to_host(context.stream);
  if (host.dtype() == DType::f64) return {host.data<double>(), host.data<double>() + host.size()};
  return {host.data<float>(), host.data<float>() + host.size()};
}

// Numbers that are the same in both types.
Tensor inputs_of(std::int64_t rows, DType type, std::uint64_t seed) {
  const Tensor in_float = random_tensor({rows, kWidth}, DType::f32, seed);
  if (type == DType::f32) return in_float;
  Tensor x = Tensor::empty(in_float.shape(), type);
  std::copy_n(in_float.data<float>(), x.size(), x.mutable_data<double>());
  return x;
}

Outcome outcome_of(const Loss& loss, DType type, const Context& context) {
  Tape tape(context);
  const Variable vectors(inputs_of(kPositions, type, 1).copy(context)),
      rows(inputs_of(kRows, type, 2).copy(context));
  const Variable result = loss(tape, vectors, rows);
  tape.backward(result);
  return {doubles_of(result.value(), context), doubles_of(vectors.gradient(), context),
          doubles_of(rows.gradient(), context)};
}

// The largest difference, relative to the largest element.
double error_of(const std::vector<double>& found, const std::vector<double>& expected) {
  double most = 0, worst = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    most = std::max(most, std::abs(expected[i]));
    const double error = std::abs(found[i] - expected[i]);
    worst = error <= worst ? worst : error;  // also a NaN
  }
  return worst / most;
}

// Negatives of which some are the positive, some none, and row 7 most.
Tensor sampled_index() {
  RandomStream random{3};
  std::vector<std::int32_t> index;
  for (std::int64_t r = 0; r < kPositions; ++r) {
    for (std::int64_t c = 0; c <= kNegatives; ++c) {
      const auto row = static_cast<std::int32_t>(random.below(kRows - 1));
      index.push_back(c == 0 || c % 5 != 0 ? row : c % 2 == 0 ? 7 : -1);
    }
  }
  return Tensor::from<std::int32_t>({kPositions, 1 + kNegatives}, index);
}

// 0, 0.5, 1, ...
Tensor position_weights() {
  std::vector<float> weights;
  for (std::int64_t r = 0; r < kPositions; ++r) weights.push_back(0.5F * static_cast<float>(r % 4));
  return Tensor::from<float>({kPositions}, weights);
}

class LossesOnGpu : public testing::GpuTest {
 protected:
  // An error of the CPU form in float, several times over because the GPU adds in another order.
  void expect_good(const std::function<Loss(const Context&)>& loss) const {
    const Outcome exact = outcome_of(loss(host_context()), DType::f64, host_context()),
                  host = outcome_of(loss(host_context()), DType::f32, host_context()),
                  found = outcome_of(loss(gpu_), DType::f32, gpu_);
    const auto compare = [](const char* what, const std::vector<double>& gpu, const std::vector<double>& cpu,
                            const std::vector<double>& truth) {
      EXPECT_LE(error_of(gpu, truth), 4 * error_of(cpu, truth) + 2e-6) << what;
    };
    compare("loss", found.loss, host.loss, exact.loss);
    compare("dvectors", found.dvectors, host.dvectors, exact.dvectors);
    compare("drows", found.drows, host.drows, exact.drows);
    const Outcome again = outcome_of(loss(gpu_), DType::f32, gpu_);
    EXPECT_EQ(again.loss, found.loss);
    EXPECT_EQ(again.dvectors, found.dvectors);
    EXPECT_EQ(again.drows, found.drows);
  }
};

TEST_F(LossesOnGpu, OverDrawnItemsAgreeWithTheHosts) {
  for (const bool unit : {false, true}) {
    for (const bool softmax : {true, false}) {
      SCOPED_TRACE(::testing::Message() << "unit " << unit << ", softmax " << softmax);
      expect_good([&](const Context& context) -> Loss {
        loss::SoftmaxOptions options{.scale = unit ? 2 : 0.3, .unit = unit};
        if (unit) options.weights = position_weights().copy(context);
        return [=, index = sampled_index().copy(context)](Tape& tape, const Variable& vectors,
                                                          const Variable& rows) {
          const loss::SampledItems items{rows, index};
          if (softmax) return loss::sampled_softmax(tape, vectors, items, options, kPositions);
          return loss::gbce(tape, vectors, items, {.logits = options, .catalogue = 1000, .calibration = 0.75},
                            kPositions);
        };
      });
    }
  }
}

TEST_F(LossesOnGpu, OverPoolsAgreeWithTheHosts) {
  std::vector<std::int64_t> ids, target;
  std::vector<std::int32_t> occurrences(kRows, 0), draws;
  std::vector<float> frequency;
  for (std::int64_t i = 0; i < kRows; ++i) {
    ids.push_back((std::int64_t{1} << 33) + 3 * i);
    draws.push_back(static_cast<std::int32_t>(i % 3));
    frequency.push_back(0.001F * static_cast<float>(1 + i % 7));
  }
  for (std::int64_t r = 0; r < kPositions; ++r) {
    const auto item = static_cast<std::size_t>(r * 7 % (kRows / 2));
    target.push_back(ids[item]);
    ++occurrences[item];
  }
  for (const loss::PoolForm form :
       {loss::PoolForm::uniform, loss::PoolForm::in_batch, loss::PoolForm::mixed}) {
    SCOPED_TRACE(static_cast<int>(form));
    expect_good([&](const Context& context) -> Loss {
      return [=, targets = Tensor::from<std::int64_t>({kPositions}, target).copy(context),
              weights = position_weights().copy(context)](Tape& tape, const Variable& vectors,
                                                          const Variable& rows) {
        const loss::Pool pool{.form = form,
                              .rows = rows,
                              .ids = Tensor::from<std::int64_t>({kRows}, ids),
                              .occurrences = Tensor::from<std::int32_t>({kRows}, occurrences),
                              .draws = Tensor::from<std::int32_t>({kRows}, draws),
                              .frequency = Tensor::from<float>({kRows}, frequency),
                              .rate = form == loss::PoolForm::in_batch ? 0 : 0.05};
        return loss::pooled_softmax(tape, vectors, targets, pool,
                                    {.scale = 3, .unit = true, .weights = weights}, kPositions);
      };
    });
  }
}

}  // namespace
}  // namespace hstu::testing_losses_gpu
