// The gate where each rank has some columns of every row: values and gradients are those of whole rows.
#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "hstu/comm/thread_group.h"
#include "support/op_cases.h"

namespace hstu::testing_divided_gate {
namespace {

using testing::random_tensor;

constexpr std::int64_t kRows = 5, kWidth = 24;  // 6 columns each on four ranks: groups of dropout are cut
constexpr double kEpsilon = 1e-5;

// Columns begin .. begin + n - 1 of each of `parts` parts of the rows of `whole` (T, parts * kWidth).
Tensor columns(const Tensor& whole, std::int64_t begin, std::int64_t n, std::int64_t parts = 1) {
  Tensor result = Tensor::empty({whole.rows(), parts * n}, DType::f64);
  for (std::int64_t r = 0; r < whole.rows(); ++r)
    for (std::int64_t p = 0; p < parts; ++p)
      std::copy_n(whole.data<double>() + r * whole.cols() + p * kWidth + begin, n,
                  result.mutable_data<double>() + (r * parts + p) * n);
  return result;
}

struct Operands {
  std::vector<Tensor> all = {random_tensor({kRows, kWidth}, DType::f64, 1),
                             random_tensor({kRows, kWidth}, DType::f64, 2),
                             random_tensor({1, kWidth}, DType::f64, 3),
                             random_tensor({1, kWidth}, DType::f64, 4)};  // u, o, weight, bias

  Operands() {  // a mean far from 0, which one pass would lose digits to
    for (std::int64_t i = 0; i < all[1].size(); ++i) all[1].mutable_data<double>()[i] += 1000;
  }
};

struct Result {
  Tensor y;
  std::vector<Tensor> gradients;
};

Result run(const std::vector<Tensor>& operands, ops::GateForm form, double rate, const Group* group,
           const Tensor& dy, bool drops = false) {
  Tape tape;
  std::vector<Variable> x;
  for (const Tensor& operand : operands) x.emplace_back(operand.copy());
  const ops::Dropout dropout{rate, 11, testing::random_names(operands[0].rows(), 12)};
  const Variable y = ops::gate(tape, form, x[0], x[1], x[2], x[3], kEpsilon, dropout, group);
  if (drops) y.drop_value();
  Result result{y.value().copy(), {}};
  tape.backward(y, dy);
  for (const Variable& variable : x) result.gradients.push_back(variable.gradient());
  return result;
}

void expect_near(const Tensor& found, const Tensor& expected, double tolerance) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::int64_t i = 0; i < found.size(); ++i)
    ASSERT_NEAR(found.data<double>()[i], expected.data<double>()[i], tolerance) << i;
}

class DividedGate : public ::testing::TestWithParam<ops::GateForm> {};

TEST_P(DividedGate, HasTheValuesAndGradientsOfWholeRows) {
  const std::int64_t parts = kernels::gate_parts(GetParam());
  const Operands operands;
  const Tensor dy = random_tensor({kRows, parts * kWidth}, DType::f64, 5);
  for (const double rate : {0.0, 0.4}) {
    const Result whole = run(operands.all, GetParam(), rate, nullptr, dy);
    for (const int ranks : {1, 2, 4}) {
      run_ranks(ranks, [&](Communicator& comm) {
        const Group group{comm};
        const std::int64_t n = kWidth / ranks, begin = comm.rank() * n;
        std::vector<Tensor> mine;
        for (const Tensor& operand : operands.all) mine.push_back(columns(operand, begin, n));
        const Result found =
            run(mine, GetParam(), rate, &group, columns(dy, begin, n, parts), /*drops=*/ranks == 2);
        // The mean of 1000 has 1e-13 of rounding, which gradients of the weight see 24 times.
        expect_near(found.y, columns(whole.y, begin, n, parts), 1e-11);
        for (std::size_t i = 0; i < mine.size(); ++i)
          expect_near(found.gradients[i], columns(whole.gradients[i], begin, n), 1e-11);
      });
    }
  }
}

// The loss is the sum over ranks of weighted outputs.
TEST_P(DividedGate, GradientsAgreeWithFiniteDifferences) {
  constexpr double kDifference = 1e-5;
  constexpr int kRanks = 2;
  const std::int64_t parts = kernels::gate_parts(GetParam()), n = kWidth / kRanks;
  run_ranks(kRanks, [&](Communicator& comm) {
    const Group group{comm};
    const auto rank = static_cast<std::uint64_t>(comm.rank());
    std::vector<Tensor> mine;
    for (std::uint64_t i = 0; i < 4; ++i)
      mine.push_back(random_tensor({i < 2 ? std::int64_t{2} : 1, n}, DType::f64, 10 * rank + i));
    const Tensor dy = random_tensor({2, parts * n}, DType::f64, 30 + rank);
    const Result result = run(mine, GetParam(), 0.3, &group, dy);
    for (int moved_rank = 0; moved_rank < kRanks; ++moved_rank) {
      for (std::size_t input = 0; input < mine.size(); ++input) {
        for (std::int64_t e = 0; e < mine[input].size(); ++e) {
          const auto loss_at = [&](double shift) {
            std::vector<Tensor> moved = mine;
            moved[input] = mine[input].copy();
            if (comm.rank() == moved_rank) moved[input].mutable_data<double>()[e] += shift;
            const Tensor y = run(moved, GetParam(), 0.3, &group, dy.copy()).y;
            double loss = 0;
            for (std::int64_t i = 0; i < y.size(); ++i) loss += y.data<double>()[i] * dy.data<double>()[i];
            return comm.sum(loss);
          };
          const double expected = (loss_at(kDifference) - loss_at(-kDifference)) / (2 * kDifference);
          if (comm.rank() != moved_rank) continue;
          ASSERT_NEAR(result.gradients[input].data<double>()[e], expected, 1e-7 * (1 + std::abs(expected)))
              << "input " << input << " element " << e;
        }
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Forms, DividedGate, ::testing::Values(ops::GateForm::concat, ops::GateForm::product),
                         [](const auto& instance) {
                           return std::string(instance.param == ops::GateForm::concat ? "Concat" : "Product");
                         });

}  // namespace
}  // namespace hstu::testing_divided_gate
