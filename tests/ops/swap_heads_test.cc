// Tokens against heads between ranks that are threads, on processors and as messages between devices, which
// the staged transport takes the place of.
#include "hstu/ops/swap_heads.h"

#include <functional>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "hstu/base/error.h"
#include "hstu/comm/thread_group.h"
#include "hstu/ops/activation.h"
#include "hstu/ops/elementwise.h"
#include "hstu/ops/exchange.h"
#include "hstu/ops/linear.h"
#include "support/op_cases.h"

namespace hstu::ops::testing_swap {
namespace {

using hstu::testing::random_tensor;

constexpr std::int64_t kHeadDim = 3;

struct SwapCase {
  int ranks;
  std::int64_t heads;
  std::vector<std::int32_t> rank_of_row;
};
const std::vector<SwapCase> kSwaps{{2, 4, {0, 1, 1, 0, 1, 0, 0}},
                                   {2, 5, {1, 1, 1}},
                                   {3, 4, {2, 0, 2, 2, 0}},
                                   {4, 4, {0, 1, 2, 3, 3, 2, 1, 0}},
                                   {2, 2, {}}};

// Columns [begin, end) of the rows of x (T, N) that `wanted` takes.
std::vector<float> block(const Tensor& x, ColumnRange columns,
                         const std::function<bool(std::size_t)>& wanted) {
  std::vector<float> values;
  for (std::int64_t t = 0; t < x.rows(); ++t)
    for (std::int64_t c = columns.begin; c < columns.end && wanted(static_cast<std::size_t>(t)); ++c)
      values.push_back(x.data<float>()[t * x.cols() + c]);
  return values;
}

Tensor matrix(const std::vector<float>& values, std::int64_t width) {
  return Tensor::from({std::ssize(values) / width, width}, values);
}

class SwapHeads : public ::testing::TestWithParam<bool> {
 protected:
  static void run(const SwapCase& c, const std::function<void(const Group&)>& body) {
    run_ranks(c.ranks, [&](Communicator& world) {
      const auto comm = world.split(0, "context");
      const auto transport = GetParam() ? staged_transport(*comm) : nullptr;
      body({*comm, transport.get()});
    });
  }
};

void expect_values(const Tensor& found, const std::vector<float>& expected) {
  EXPECT_EQ(std::vector<float>(found.data<float>(), found.data<float>() + found.size()), expected);
}

TEST_P(SwapHeads, AreThoseOfTheWholeAndGradientsGoBack) {
  for (const SwapCase& c : kSwaps) {
    const std::int64_t width = c.heads * kHeadDim;
    const Tensor whole = random_tensor({std::ssize(c.rank_of_row), width}, DType::f32, 1),
                 d_whole = random_tensor(whole.shape(), DType::f32, 2);
    run(c, [&](const Group& group) {
      const DividedRows rows = divided_rows(c.rank_of_row, group);
      const SharedHeads heads{c.heads, kHeadDim, group};
      const ColumnRange h = heads.heads_of(group.rank());
      const ColumnRange my_columns{h.begin * kHeadDim, h.end * kHeadDim};
      const auto all = [](std::size_t) { return true; };
      const auto is_mine = [&](std::size_t t) { return c.rank_of_row[t] == group.rank(); };
      const auto rows_of = [&](const Tensor& x) { return block(x, {0, width}, is_mine); };
      const auto heads_of = [&](const Tensor& x) { return block(x, my_columns, all); };
      Tape tape;
      const Variable x(matrix(rows_of(whole), width));
      const Variable y = swap_to_heads(tape, x, rows, heads);
      expect_values(y.value(), heads_of(whole));
      tape.backward(y, matrix(heads_of(d_whole), my_columns.width()));
      expect_values(x.gradient(), rows_of(d_whole));
      Tape back;
      const Variable z(matrix(heads_of(whole), my_columns.width()));
      const Variable there = swap_to_rows(back, z, rows, heads);
      expect_values(there.value(), rows_of(whole));
      back.backward(there, matrix(rows_of(d_whole), width));
      expect_values(z.gradient(), heads_of(d_whole));
    });
  }
}

// Of columns of a variable, through SiLU: the rest of its gradient is that of others.
TEST_P(SwapHeads, OfColumnsThroughSilu) {
  const SwapCase c{2, 2, {0, 1, 0}};
  run(c, [&](const Group& group) {
    const DividedRows rows = divided_rows(c.rank_of_row, group);
    const SharedHeads heads{c.heads, kHeadDim, group};
    const std::int64_t width = c.heads * kHeadDim;
    const Tensor start = random_tensor({rows.mine(), width}, DType::f64, 5),
                 weight = random_tensor({width, 2 * width}, DType::f64, 6),
                 d_z = random_tensor({rows.mine(), width}, DType::f64, 7);
    // x W = (a, b), and z = silu(a) silu(b): there and back again, or not at all.
    const auto gradient = [&](bool swaps) {
      Tape tape;
      const Variable x(start.copy()), w = Variable::constant(weight);
      const LinearSilu ab = linear_silu(tape, x, w, Variable(), {{0, 2 * width}}, 0);
      const auto silu_of = [&](std::int64_t first) {
        if (!swaps)
          return activate(tape, linear_columns(tape, x, w, Variable(), {{first, first + width}}),
                          Activation::silu);
        const Columns columns(ab.y, first, width, ab.activated, first);
        return swap_to_rows(tape, swap_to_heads(tape, columns, rows, heads), rows, heads);
      };
      tape.backward(multiply(tape, silu_of(0), silu_of(width)), d_z);
      return x.gradient();
    };
    const Tensor found = gradient(true), expected = gradient(false);
    for (std::int64_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR(found.data<double>()[i], expected.data<double>()[i], 1e-12);
  });
}

TEST_P(SwapHeads, RowsAndHeadsThatDoNotFitAreRefused) {
  run({2, 2, {0, 1}}, [](const Group& group) {
    const DividedRows rows = divided_rows(std::vector<std::int32_t>{0, 1}, group);
    Tape tape;
    const Variable x(Tensor::zeros({2, 2 * kHeadDim}, DType::f32));
    EXPECT_THROW(swap_to_heads(tape, x, rows, {2, kHeadDim, group}), InternalError);
    EXPECT_THROW(swap_to_rows(tape, x, rows, {2, kHeadDim, group}), InternalError);
    const Variable one(Tensor::zeros({1, kHeadDim}, DType::f32));
    EXPECT_THROW(swap_to_heads(tape, one, rows, {1, kHeadDim, group}), InternalError);
  });
}

// Rank r has 10 r + s for rank s, as many times as s + 1, and none for itself.
TEST_P(SwapHeads, ExchangedRowsComeByRankAndTheirGradientsGoBack) {
  run({3, 0, {}}, [](const Group& group) {
    std::vector<std::int64_t> sent, received;
    std::vector<float> mine, expected;
    for (int s = 0; s < 3; ++s) {
      const bool is_me = s == group.rank();
      sent.push_back(is_me ? 0 : s + 1), received.push_back(is_me ? 0 : group.rank() + 1);
      for (std::int64_t i = 0; i < sent.back(); ++i)
        mine.push_back(static_cast<float>(10 * group.rank() + s));
      for (std::int64_t i = 0; i < received.back(); ++i)
        expected.push_back(static_cast<float>(10 * s + group.rank()));
    }
    Tape tape;
    const Variable x(matrix(mine, 1));
    const Variable y = exchange_rows(tape, x, sent, received, group);
    expect_values(y.value(), expected);
    tape.backward(y, y.value().copy());
    expect_values(x.gradient(), mine);
    EXPECT_THROW(exchange_rows(tape, x, {1, 1}, received, group), InternalError);
  });
}

INSTANTIATE_TEST_SUITE_P(Forms, SwapHeads, ::testing::Values(false, true), [](const auto& instance) {
  return instance.param ? "ThroughDeviceTransport" : "ThroughTheHost";
});

}  // namespace
}  // namespace hstu::ops::testing_swap
