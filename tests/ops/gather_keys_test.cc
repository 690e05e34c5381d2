// Rows of other ranks between ranks that are threads, on processors and as messages between devices, which
// the staged transport takes the place of.
#include "hstu/ops/gather_keys.h"

#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "hstu/base/error.h"
#include "hstu/comm/thread_group.h"
#include "hstu/ops/activation.h"
#include "hstu/ops/elementwise.h"
#include "hstu/ops/gather_sum.h"
#include "hstu/ops/linear.h"
#include "support/op_cases.h"

namespace hstu::ops::testing_keys {
namespace {

using hstu::testing::random_tensor;
using Rows = std::vector<std::int32_t>;

Tensor list(const Rows& rows) {
  return row_index(rows);
}

// Of rows a, b, c, of which rank 0 has a and c, and rank 1 has b: rank 0 needs a, b, c and a again, rank 1
// needs a and b.
DividedKeys divided(int rank) {
  const bool first = rank == 0;
  DividedKeys keys;
  keys.given = first ? std::vector<std::int64_t>{2, 1} : std::vector<std::int64_t>{1, 1};
  keys.received = first ? std::vector<std::int64_t>{2, 1} : std::vector<std::int64_t>{1, 1};
  keys.given_rows = list(first ? Rows{0, 1, 0} : Rows{0, 0});
  keys.places = first ? Tensor::from<std::int64_t>({3}, {0, 1, 2}) : Tensor::from<std::int64_t>({2}, {0, 1});
  keys.keys = list(first ? Rows{0, 2, 1, 0} : Rows{0, 1});
  keys.own = list(first ? Rows{0, 1} : Rows{0});
  return keys;
}

std::vector<double> numbers(const Tensor& x) {
  return {x.data<double>(), x.data<double>() + x.size()};
}

class GatherKeys : public ::testing::TestWithParam<bool> {
 protected:
  static void run(const std::function<void(const Group&)>& body) {
    run_ranks(2, [&](Communicator& world) {
      const auto comm = world.split(0, "context");
      const auto transport = GetParam() ? staged_transport(*comm) : nullptr;
      body({*comm, transport.get()});
    });
  }
};

TEST_P(GatherKeys, AreTheRowsOfAllRanksAndGradientsAreTheirSums) {
  run([](const Group& group) {
    const bool first = group.rank() == 0;
    Tape tape;
    const Variable x(first ? Tensor::from<double>({2, 2}, {1, 2, 21, 22})
                           : Tensor::from<double>({1, 2}, {11, 12}));
    const Variable y = gather_keys(tape, x, divided(group.rank()), group);
    EXPECT_EQ(numbers(y.value()),
              (first ? std::vector<double>{1, 2, 11, 12, 21, 22, 1, 2} : std::vector<double>{1, 2, 11, 12}));
    y.drop_value();  // all ranks read it again in their backward passes
    EXPECT_EQ(y.value().rows(), first ? 4 : 2);
    tape.backward(y, first ? Tensor::from<double>({4, 2}, {1, 2, 3, 4, 5, 6, 70, 80})
                           : Tensor::from<double>({2, 2}, {100, 200, 300, 400}));
    EXPECT_EQ(numbers(x.gradient()),
              (first ? std::vector<double>{171, 282, 5, 6} : std::vector<double>{303, 404}));
  });
}

// Of columns of a variable: the rest of its gradient is that of others.
TEST_P(GatherKeys, OfColumnsThroughSilu) {
  run([](const Group& group) {
    const DividedKeys keys = divided(group.rank());
    const std::int64_t n = keys.own.size(), k = keys.keys.size();
    const Tensor start = random_tensor({n, 3}, DType::f64, 5), weight = random_tensor({3, 4}, DType::f64, 6),
                 dy = random_tensor({k, 2}, DType::f64, 7);
    const auto gradient = [&](bool through) {
      Tape tape;
      const Variable x(start.copy()), w = Variable::constant(weight);
      const LinearSilu both = linear_silu(tape, x, w, Variable(), {{0, 4}}, 0);
      const auto silu_of = [&](std::int64_t first) {
        if (through) return Columns(both.y, first, 2, both.activated, first);
        return Columns(
            activate(tape, linear_columns(tape, x, w, Variable(), {{first, first + 2}}), Activation::silu));
      };
      tape.backward(multiply(tape, gather_keys(tape, silu_of(0), keys, group),
                             gather_keys(tape, silu_of(2), keys, group)),
                    dy);
      return numbers(x.gradient());
    };
    const std::vector<double> found = gradient(true), expected = gradient(false);
    for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-12);
  });
}

TEST_P(GatherKeys, RowsThatDoNotFitAreRefused) {
  run([](const Group& group) {
    Tape tape;
    const Variable x(Tensor::zeros({5, 2}, DType::f64));
    EXPECT_THROW(gather_keys(tape, x, divided(group.rank()), group), InternalError);
  });
}

INSTANTIATE_TEST_SUITE_P(Keys, GatherKeys, ::testing::Values(false, true));

}  // namespace
}  // namespace hstu::ops::testing_keys
