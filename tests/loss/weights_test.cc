// Losses with weights are sums of the positions' losses times their weights, and so are their gradients.
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "hstu/loss/pooled_softmax.h"
#include "hstu/loss/sampled_softmax.h"
#include "loss/plain_catalogue.h"
#include "support/op_cases.h"
#include "support/tensor_values.h"

namespace hstu::testing_weights {
namespace {

using testing::PlainCatalogue;
using testing::random_tensor;
using testing::values_of;

constexpr std::int64_t kPositions = 4, kItems = 6, kWidth = 3;
constexpr float kWeights[kPositions] = {2.5f, 0, 1, 0.25f};

// The loss and all gradients, one number after another.
std::vector<double> numbers_of(const Variable& loss, std::vector<Tensor> gradients) {
  std::vector<double> numbers = values_of<double>(loss.value());
  for (const Tensor& gradient : gradients)
    for (const double g : values_of<double>(gradient)) numbers.push_back(g);
  return numbers;
}

// A loss of kPositions vectors and kItems rows, with weights or without.
using WeightedLoss = std::function<std::vector<double>(const Tensor& weights)>;

std::vector<double> full(const Tensor& weights) {
  const Tensor ids = Tensor::from<std::int64_t>({kItems}, {0, 1, 2, 3, 4, 5});
  const PlainCatalogue catalogue({0, 1, 2, 3, 4, 5}, random_tensor({kItems, kWidth}, DType::f64, 2));
  Tape tape;
  const Variable f(random_tensor({kPositions, kWidth}, DType::f64, 1));
  const Variable loss =
      loss::full_softmax(tape, f, Tensor::from<std::int64_t>({kPositions}, {3, 0, 3, 5}), catalogue.rows(),
                         {.scale = 2, .unit = true, .weights = weights}, 4);
  tape.backward(loss);
  return numbers_of(loss, {f.gradient(), catalogue.gradient()});
}

std::vector<double> sampled(const Tensor& weights, bool softmax) {
  const Tensor index = Tensor::from<std::int32_t>({kPositions, 3}, {3, 1, 2, 0, 4, 4, 3, 3, 1, 5, 0, -1});
  const loss::SoftmaxOptions options{.scale = 2, .unit = false, .weights = weights};
  Tape tape;
  const Variable f(random_tensor({kPositions, kWidth}, DType::f64, 1)),
      e(random_tensor({kItems, kWidth}, DType::f64, 2));
  const Variable loss = softmax ? loss::sampled_softmax(tape, f, {e, index}, options, 4)
                                : loss::gbce(tape, f, {e, index}, {options, 50, 0.75}, 4);
  tape.backward(loss);
  return numbers_of(loss, {f.gradient(), e.gradient()});
}

std::vector<double> pooled(const Tensor& weights) {
  Tape tape;
  const Variable f(random_tensor({kPositions, kWidth}, DType::f64, 1)),
      e(random_tensor({kItems, kWidth}, DType::f64, 2));
  const loss::Pool pool{.form = loss::PoolForm::in_batch,
                        .rows = e,
                        .ids = Tensor::from<std::int64_t>({kItems}, {0, 1, 2, 3, 4, 5}),
                        .occurrences = Tensor::from<std::int32_t>({kItems}, {1, 1, 0, 2, 1, 1}),
                        .draws = Tensor::zeros({kItems}, DType::i32),
                        .frequency = {}};
  const Variable loss = loss::pooled_softmax(tape, f, Tensor::from<std::int64_t>({kPositions}, {3, 0, 3, 5}),
                                             pool, {.scale = 2, .unit = true, .weights = weights}, 4);
  tape.backward(loss);
  return numbers_of(loss, {f.gradient(), e.gradient()});
}

TEST(WeightsOfPositions, AreFactorsOfTheirLossesAndGradients) {
  const std::pair<const char*, WeightedLoss> losses[] = {
      {"full", full},
      {"sampled softmax", [](const Tensor& w) { return sampled(w, true); }},
      {"gbce", [](const Tensor& w) { return sampled(w, false); }},
      {"pooled", pooled}};
  for (const auto& [name, loss] : losses) {
    SCOPED_TRACE(name);
    const std::vector<double> plain = loss({}),
                              found = loss(Tensor::from<float>(
                                  {kPositions}, {kWeights[0], kWeights[1], kWeights[2], kWeights[3]}));
    std::vector<double> sum(plain.size()), weighted(plain.size());
    for (std::size_t r = 0; r < kPositions; ++r) {
      std::vector<float> one(kPositions, 0);
      one[r] = 1;
      const std::vector<double> alone = loss(Tensor::from<float>({kPositions}, one));
      EXPECT_GT(alone[0], 1e-3);
      for (std::size_t i = 0; i < sum.size(); ++i) {
        sum[i] += alone[i];
        weighted[i] += static_cast<double>(kWeights[r]) * alone[i];
      }
    }
    for (std::size_t i = 0; i < sum.size(); ++i) {
      EXPECT_NEAR(plain[i], sum[i], 1e-14) << i;
      EXPECT_NEAR(found[i], weighted[i], 1e-14) << i;
    }
  }
}

}  // namespace
}  // namespace hstu::testing_weights
