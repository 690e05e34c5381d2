// The correction of sampled items by the logarithm of how often they are drawn: 50 items, drawn by
// Zipf's law.
#include <cmath>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "hstu/base/random.h"
#include "hstu/loss/pooled_softmax.h"
#include "loss/plain_catalogue.h"

namespace hstu::testing_log_q {
namespace {

using loss::Pool;
using testing::random_tensor;
using Gradient = std::vector<double>;

constexpr std::int64_t kItems = 50, kWidth = 8, kTarget = 20;
const loss::SoftmaxOptions kOptions{.scale = 3, .unit = true};

struct Toy {
  Tensor vector = random_tensor({1, kWidth}, DType::f64, 1),
         rows = random_tensor({kItems, kWidth}, DType::f64, 2);
  std::vector<std::int64_t> ids = std::vector<std::int64_t>(kItems);
  std::vector<float> zipf;
  std::vector<double> up_to;  // running sums of zipf
  Toy() {
    std::iota(ids.begin(), ids.end(), 0);
    double total = 0;
    for (std::int64_t i = 1; i <= kItems; ++i) total += 1.0 / static_cast<double>(i);
    for (std::int64_t i = 1; i <= kItems; ++i) {
      zipf.push_back(static_cast<float>(1.0 / (static_cast<double>(i) * total)));
      up_to.push_back((up_to.empty() ? 0 : up_to.back()) + static_cast<double>(zipf.back()));
    }
  }
};

// Of a pool in which items occur so often.
Gradient pooled_gradient(const Toy& toy, const std::vector<std::int32_t>& occurrences, bool corrected) {
  const std::vector<float> even(kItems, 1.0f / kItems);  // no item is corrected more than another
  const Pool pool{.form = loss::PoolForm::in_batch,
                  .rows = Variable::constant(toy.rows),
                  .ids = Tensor::from<std::int64_t>({kItems}, toy.ids),
                  .occurrences = Tensor::from<std::int32_t>({kItems}, occurrences),
                  .draws = Tensor::zeros({kItems}, DType::i32),
                  .frequency = Tensor::from<float>({kItems}, corrected ? toy.zipf : even)};
  Tape tape;
  const Variable f(toy.vector);
  tape.backward(loss::pooled_softmax(tape, f, Tensor::from<std::int64_t>({1}, {kTarget}), pool, kOptions, 1));
  return {f.gradient().data<double>(), f.gradient().data<double>() + kWidth};
}

// The mean over pools of `draws` items each.
Gradient mean_gradient(const Toy& toy, int draws, int pools, bool corrected) {
  Gradient mean(kWidth, 0);
  RandomStream random{static_cast<std::uint64_t>(draws)};
  for (int p = 0; p < pools; ++p) {
    std::vector<std::int32_t> occurrences(kItems, 0);
    for (int d = 0; d < draws; ++d) {
      const double x = random.uniform() * toy.up_to.back();
      const auto at = std::upper_bound(toy.up_to.begin(), toy.up_to.end() - 1, x) - toy.up_to.begin();
      ++occurrences[static_cast<std::size_t>(at)];
    }
    const Gradient g = pooled_gradient(toy, occurrences, corrected);
    for (std::size_t e = 0; e < g.size(); ++e) mean[e] += g[e] / pools;
  }
  return mean;
}

double distance(const Gradient& a, const Gradient& b) {
  double sum = 0;
  for (std::size_t e = 0; e < a.size(); ++e) sum += (a[e] - b[e]) * (a[e] - b[e]);
  return std::sqrt(sum);
}

TEST(LogQ, MakesTheMeanGradientConsistent) {
  const Toy toy;
  const testing::PlainCatalogue catalogue(toy.ids, toy.rows);
  Tape tape;
  const Variable f(toy.vector);
  tape.backward(
      loss::full_softmax(tape, f, Tensor::from<std::int64_t>({1}, {kTarget}), catalogue.rows(), kOptions, 1));
  const Gradient full(f.gradient().data<double>(), f.gradient().data<double>() + kWidth);

  constexpr int kPools = 4000;  // the error of the mean is below the distances that are compared
  const double few = distance(mean_gradient(toy, 10, kPools, true), full),
               more = distance(mean_gradient(toy, 100, kPools, true), full),
               most = distance(mean_gradient(toy, 1000, kPools / 8, true), full),
               uncorrected = distance(mean_gradient(toy, 1000, kPools / 8, false), full);
  RecordProperty("distances", std::to_string(few) + " " + std::to_string(more) + " " + std::to_string(most) +
                                  " " + std::to_string(uncorrected));
  EXPECT_LT(more, few / 4);
  EXPECT_LT(most, more / 2);
  EXPECT_LE(most, uncorrected / 5);
}

}  // namespace
}  // namespace hstu::testing_log_q
