// Losses of positions with negatives of their own against plain formulas and finite differences.
#include "hstu/loss/sampled_softmax.h"

#include <cmath>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "hstu/base/threads.h"
#include "loss/gradients.h"
#include "support/op_cases.h"
#include "support/tensor_values.h"

namespace hstu::testing_sampled {
namespace {

using testing::random_tensor;
using testing::values_of;

constexpr std::int64_t kPositions = 5, kNegatives = 6, kRows = 7, kWidth = 4;

// Some negatives occur twice, some are the positive, one is none.
Tensor sampled_index() {
  return Tensor::from<std::int32_t>({kPositions, 1 + kNegatives},
                                    {0, 1, 2, 3, 1, 1, 4, 1, 1, 0, 0, 2, 3,  5, 2, 3, 3, 3,
                                     3, 3, 3, 6, 6, 6, 6, 6, 6, 6, 3, 0, -1, 2, 4, 5, 3});
}

struct LossCase {
  const char* name;
  bool unit, softmax;
  double scale, calibration;
};
constexpr LossCase kLossCases[] = {{"softmax of unit vectors", true, true, 20, 0},
                                   {"softmax", false, true, 1, 0},
                                   {"gbce", false, false, 1, 0.75},
                                   {"binary cross entropy", false, false, 2, 0},
                                   {"calibrated gbce of unit vectors", true, false, 3, 1}};
constexpr std::int64_t kCatalogue = 50;

Variable loss_of(Tape& tape, const LossCase& c, const Variable& vectors, const loss::SampledItems& items,
                 double divisor) {
  const loss::SoftmaxOptions options{.scale = c.scale, .unit = c.unit};
  if (c.softmax) return loss::sampled_softmax(tape, vectors, items, options, divisor);
  return loss::gbce(tape, vectors, items,
                    {.logits = options, .catalogue = kCatalogue, .calibration = c.calibration}, divisor);
}

// Position by position, in double.
double plain_loss(const LossCase& c, const Tensor& vectors, const Tensor& rows, const Tensor& index) {
  double total = 0;
  for (std::int64_t r = 0; r < index.rows(); ++r) {
    const std::int32_t* const row = index.data<std::int32_t>() + r * index.cols();
    std::vector<double> s;  // the positive, then the negatives that count
    for (std::int64_t k = 0; k < index.cols(); ++k) {
      if (k > 0 && (row[k] < 0 || row[k] == row[0])) continue;
      double dot = 0, square = 0;
      for (std::int64_t e = 0; e < rows.cols(); ++e) {
        const double x = rows.data<double>()[row[k] * rows.cols() + e];
        dot += x * vectors.data<double>()[r * rows.cols() + e];
        square += x * x;
      }
      s.push_back(c.scale * dot / (c.unit ? std::sqrt(square) : 1));
    }
    if (c.softmax) {
      double sum = 0;
      for (const double x : s) sum += std::exp(x);
      total += std::log(sum) - s[0];
      continue;
    }
    const double k = static_cast<double>(index.cols() - 1), a = k / (kCatalogue - 1),
                 beta = a * (c.calibration * (1 - 1 / a) + 1 / a);
    double sum = beta * std::log(1 / (1 + std::exp(-s[0])));
    for (std::size_t i = 1; i < s.size(); ++i) sum += std::log(1 - 1 / (1 + std::exp(-s[i])));
    total -= sum / (k + 1);
  }
  return total;
}

TEST(SampledLosses, AreTheirFormulas) {
  for (const LossCase& c : kLossCases) {
    const Tensor vectors = random_tensor({kPositions, kWidth}, DType::f64, 1),
                 rows = random_tensor({kRows, kWidth}, DType::f64, 2);
    Tape tape(false);
    const double found =
        loss_of(tape, c, Variable::constant(vectors), {Variable::constant(rows), sampled_index()}, 3)
            .value()
            .data<double>()[0];
    EXPECT_NEAR(found, plain_loss(c, vectors, rows, sampled_index()) / 3, 1e-11) << c.name;
  }
}

TEST(SampledLosses, GradientsReachVectorsAndRows) {
  for (const LossCase& c : kLossCases) {
    Tensor vectors = random_tensor({kPositions, kWidth}, DType::f64, 1),
           rows = random_tensor({kRows, kWidth}, DType::f64, 2);
    Tape tape;
    const Variable f(vectors), e(rows);
    tape.backward(loss_of(tape, c, f, {e, sampled_index()}, 3));
    const auto loss = [&] {
      Tape forward(false);
      return loss_of(forward, c, Variable::constant(vectors), {Variable::constant(rows), sampled_index()}, 3)
          .value()
          .data<double>()[0];
    };
    testing::expect_gradient(vectors, f.gradient(), loss, c.name);
    testing::expect_gradient(rows, e.gradient(), loss, c.name);
  }
}

// Where all negatives are the positive (position 3), nothing is to be learnt.
TEST(SampledLosses, NegativesThatAreThePositiveDoNotCount) {
  const Tensor index = Tensor::from<std::int32_t>({1, 3}, {1, 1, 1});
  Tape tape;
  const Variable f(random_tensor({1, kWidth}, DType::f64, 1)),
      e(random_tensor({kRows, kWidth}, DType::f64, 2));
  const Variable loss = loss::sampled_softmax(tape, f, {e, index}, {.scale = 20, .unit = true}, 1);
  tape.backward(loss);
  EXPECT_NEAR(loss.value().data<double>()[0], 0, 1e-12);
  for (const double g : values_of<double>(e.gradient())) EXPECT_NEAR(g, 0, 1e-12);
}

// log(1 - sigmoid(100)) of the formula is -infinity in float.
TEST(SampledLosses, GbceIsStableForLogitsOfAnySize) {
  for (const float size : {1.0f, 60.0f, 500.0f, -500.0f}) {
    const Tensor index = Tensor::from<std::int32_t>({1, 3}, {0, 1, 1});
    Tape tape;
    const Variable f(Tensor::from<float>({1, 1}, {size})), e(Tensor::from<float>({2, 1}, {-1, 1}));
    const Variable loss =
        loss::gbce(tape, f, {e, index}, {.logits = {}, .catalogue = kCatalogue, .calibration = 0}, 1);
    tape.backward(loss);
    // t = 0: beta = 1. softplus(size) three times, over K + 1 = 3.
    const double x = size, expected = x > 40 ? x : std::log1p(std::exp(x));
    EXPECT_NEAR(loss.value().data<float>()[0], expected, 1e-6 * (1 + expected)) << size;
    EXPECT_NEAR(f.gradient().data<float>()[0], 1 / (1 + std::exp(-x)), 1e-6) << size;
  }
}

TEST(SampledLosses, HaveTheSameBitsWithAnyNumberOfThreads) {
  const std::int64_t positions = 300, columns = 20, rows = 40;
  Tensor index = Tensor::empty({positions, columns}, DType::i32);
  RandomStream random{3};
  for (std::int64_t i = 0; i < index.size(); ++i)
    index.mutable_data<std::int32_t>()[i] = static_cast<std::int32_t>(random.below(rows));
  const int before = threads();
  for (const LossCase& c : kLossCases) {
    std::vector<std::vector<float>> results;
    for (const int n : {1, 2, 5}) {
      set_threads(n);
      Tape tape;
      const Variable f(random_tensor({positions, 24}, DType::f32, 1)),
          e(random_tensor({rows, 24}, DType::f32, 2));
      const Variable loss = loss_of(tape, c, f, {e, index}, 300);
      tape.backward(loss);
      results.push_back(values_of<float>(loss.value()));
      for (const Variable& v : {f, e}) {
        const auto g = values_of<float>(v.gradient());
        results.back().insert(results.back().end(), g.begin(), g.end());
      }
    }
    for (const auto& result : results) EXPECT_EQ(result, results.front()) << c.name;
  }
  set_threads(before);
}

}  // namespace
}  // namespace hstu::testing_sampled
