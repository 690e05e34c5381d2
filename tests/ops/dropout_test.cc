// A row's dropout follows its name, forward and backward, wherever it is in the batch.
#include <algorithm>
#include <functional>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "support/op_cases.h"

namespace hstu {
namespace {

using testing::random_names;
using testing::random_tensor;

constexpr std::int64_t kRows = 9, kWidth = 40;

struct Rows {
  std::vector<float> y, dx;  // row after row
};

// Runs op on the rows `order` of x, dy and names.
using Op = std::function<Variable(Tape&, const Variable& x, const ops::Dropout&)>;
Rows run(const std::vector<std::int64_t>& order, const Op& op) {
  const Tensor x = random_tensor({kRows, kWidth}, DType::f32, 1), names = random_names(kRows, 2);
  Tape tape;
  std::vector<Variable> rows;
  std::vector<std::int64_t> chosen;
  for (const std::int64_t r : order) {
    rows.push_back(Variable(x.row_range(r, r + 1).copy()));
    chosen.push_back(names.data<std::int64_t>()[r]);
  }
  const auto n = static_cast<std::int64_t>(order.size());
  const Variable y =
      op(tape, ops::concat_rows(tape, rows), {0.5, 77, Tensor::from<std::int64_t>({n}, chosen)});
  const Tensor all = random_tensor({kRows, y.cols()}, DType::f32, 3);
  Tensor dy = Tensor::empty({n, y.cols()}, DType::f32);
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t r = order[static_cast<std::size_t>(i)];
    dy.row_range(i, i + 1).copy_from(all.row_range(r, r + 1));
  }
  tape.backward(y, dy);
  Rows result{{y.value().data<float>(), y.value().data<float>() + y.value().size()}, {}};
  for (const Variable& row : rows) {
    const float* const dx = row.gradient().data<float>();
    result.dx.insert(result.dx.end(), dx, dx + kWidth);
  }
  return result;
}

void expect_rows_alone_decide(const Op& op) {
  const std::vector<std::int64_t> order{7, 2, 8, 0};
  const Rows all = run({0, 1, 2, 3, 4, 5, 6, 7, 8}, op), some = run(order, op);
  const std::size_t width = all.y.size() / kRows;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto r = static_cast<std::size_t>(order[i]);
    EXPECT_TRUE(std::equal(&some.y[i * width], &some.y[i * width] + width, &all.y[r * width])) << r;
    EXPECT_TRUE(std::equal(&some.dx[i * kWidth], &some.dx[i * kWidth] + kWidth, &all.dx[r * kWidth])) << r;
  }
  EXPECT_GT(std::count(all.y.begin(), all.y.end(), 0.0f), static_cast<std::ptrdiff_t>(all.y.size()) / 3);
}

TEST(NamedDropout, OfTheGate) {
  const Variable ones(Tensor::from<float>({kWidth}, std::vector<float>(kWidth, 1.0f)));
  expect_rows_alone_decide([&](Tape& tape, const Variable& x, const ops::Dropout& dropout) {
    return ops::gate(tape, ops::GateForm::concat, x, x, ones, ones, 1e-5, dropout);
  });
}

TEST(NamedDropout, OfGatheredRows) {
  expect_rows_alone_decide([](Tape& tape, const Variable& x, const ops::Dropout& dropout) {
    std::vector<std::int32_t> index(static_cast<std::size_t>(x.rows()));
    std::iota(index.begin(), index.end(), 0);
    return ops::gather_sum(tape, {{x, ops::row_index(index), 2}}, dropout);
  });
}

// Values that are the unit matrix make the output the weights: each is what it was without dropout times the
// factor of its row's name, its head and its token.
TEST(NamedDropout, OfTheWeightsOfAttention) {
  constexpr std::int64_t kTokens = 24, kTwoHeads = 2;
  const Tensor q = random_tensor({kTokens, kTwoHeads * kTokens}, DType::f64, 1),
               k = random_tensor({kTokens, kTwoHeads * kTokens}, DType::f64, 2);
  Tensor unit = Tensor::zeros({kTokens, kTwoHeads * kTokens}, DType::f64);
  for (std::int64_t t = 0; t < kTokens; ++t) {
    for (std::int64_t h = 0; h < kTwoHeads; ++h)
      unit.mutable_data<double>()[t * kTwoHeads * kTokens + h * kTokens + t] = 1;
  }
  const ops::Dropout dropout{0.4, 77, random_names(kTokens, 3)};
  for (const ScoreFunction score : {ScoreFunction::silu, ScoreFunction::softmax}) {
    const auto weights = [&](const ops::Dropout& of) {
      ops::AttentionShape shape;
      shape.heads = kTwoHeads, shape.head_dim = kTokens;
      shape.offsets = Tensor::from<std::int64_t>({2}, {0, kTokens});
      shape.score = score, shape.dropout = of;
      Tape tape(false);
      return ops::attention(tape, Variable(q), Variable(k), Variable(unit), shape).value();
    };
    const Tensor whole = weights({}), dropped = weights(dropout);
    std::int64_t zeros = 0;
    for (std::int64_t t = 0; t < kTokens; ++t) {
      for (std::int64_t h = 0; h < kTwoHeads; ++h) {
        std::vector<double> factors(kTokens);
        kernels::Dropout of_head = dropout.of_rows(kTokens);
        of_head.key = mix64(of_head.key + static_cast<std::uint64_t>(h));
        kernels::dropout_factors(of_head, t, kTokens, factors.data());
        for (std::int64_t j = 0; j < kTokens; ++j) {
          const std::int64_t at = (t * kTwoHeads + h) * kTokens + j;
          const double factor = factors[static_cast<std::size_t>(j)];
          ASSERT_NEAR(dropped.data<double>()[at], factor * whole.data<double>()[at], 1e-14);
          zeros += j <= t && factor == 0 ? 1 : 0;
        }
      }
    }
    EXPECT_NEAR(static_cast<double>(zeros), 0.4 * kTwoHeads * kTokens * (kTokens + 1) / 2, 60);
  }
}

TEST(NamedDropout, WantsANameForEachRow) {
  Tape tape;
  const Variable x(random_tensor({3, 4}, DType::f32, 1));
  EXPECT_THROW(ops::gather_sum(tape, {{x, ops::row_index({0, 1, 2}), 1}}, {0.5, 1, random_names(2, 1)}),
               InternalError);
}

}  // namespace
}  // namespace hstu
