// Exchanges of rows between ranks that are threads, on processors and as messages between devices, for which
// the staged transport stands.
#include "hstu/ops/exchange.h"

#include <cmath>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "hstu/comm/thread_group.h"
#include "support/op_cases.h"

namespace hstu::testing_exchange {
namespace {

using testing::random_tensor;
using Rows = std::vector<std::int64_t>;

constexpr std::int64_t kWidth = 3;
// Rows of each rank.
const std::vector<Rows> kDivisions{{2, 3}, {3, 0, 2}, {0, 4}, {1, 1, 1}};

std::int64_t sum(const Rows& rows) {
  return std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
}

class Exchange : public ::testing::TestWithParam<bool> {
 protected:
  // Of each rank of a group of its own beside the world.
  static void run(const Rows& rows, const std::function<void(Communicator& world, const Group&)>& body) {
    run_ranks(static_cast<int>(rows.size()), [&](Communicator& world) {
      const auto comm = world.split(0, "tensor");
      const auto transport = GetParam() ? staged_transport(*comm) : nullptr;
      body(world, {*comm, transport.get()});
    });
  }
};

template <typename T>
std::vector<T> values(const Tensor& tensor) {
  return {tensor.data<T>(), tensor.data<T>() + tensor.size()};
}

TEST_P(Exchange, GathersTheRowsOfAllRanksInTheirOrder) {
  for (const Rows& rows : kDivisions) {
    std::vector<float> expected;
    for (std::size_t r = 0; r < rows.size(); ++r)
      for (const float x : values<float>(random_tensor({rows[r], kWidth}, DType::f32, r)))
        expected.push_back(x);
    run(rows, [&](Communicator&, const Group& group) {
      const auto me = static_cast<std::size_t>(group.rank());
      EXPECT_EQ(ops::rows_of_ranks(rows[me], group), rows);
      Tape tape;
      const Variable x(random_tensor({rows[me], kWidth}, DType::f32, me));
      EXPECT_EQ(values<float>(ops::all_gather_rows(tape, x, rows, group).value()), expected);
    });
  }
}

// Terms of very different sizes.
Tensor uneven_terms(const Rows& rows, std::size_t rank) {
  return testing::map(random_tensor({sum(rows), kWidth}, DType::f32, rank),
                      [rank](double x) { return x * (rank % 2 == 0 ? 1e6 : 1e-3); });
}

TEST_P(Exchange, ScattersSumsInTheOrderOfRanks) {
  for (const Rows& rows : kDivisions) {
    std::vector<float> sums(static_cast<std::size_t>(sum(rows) * kWidth), 0);
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const std::vector<float> terms = values<float>(uneven_terms(rows, r));
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += terms[i];
    }
    run(rows, [&](Communicator&, const Group& group) {
      const auto me = static_cast<std::size_t>(group.rank());
      const std::int64_t first = std::accumulate(rows.begin(), rows.begin() + group.rank(), std::int64_t{0});
      Tape tape;
      const Variable y = ops::reduce_scatter_rows(tape, Variable(uneven_terms(rows, me)), rows, group);
      const auto begin = sums.begin() + first * kWidth;
      EXPECT_EQ(values<float>(y.value()), std::vector<float>(begin, begin + rows[me] * kWidth));
    });
  }
}

// What a rank does to its x with one of the operations, or with both.
struct Case {
  std::string name;
  bool gathers_first;  // x has the rank's rows; otherwise all rows
  std::function<Variable(Tape&, const Variable&, const Rows&, const Group&)> run;
};
const std::vector<Case> kCases{
    {"all_gather_rows", true,
     [](Tape& t, const Variable& x, const Rows& rows, const Group& group) {
       return ops::all_gather_rows(t, x, rows, group);
     }},
    {"reduce_scatter_rows", false,
     [](Tape& t, const Variable& x, const Rows& rows, const Group& group) {
       return ops::reduce_scatter_rows(t, x, rows, group);
     }},
    // x is read twice, so that gradients add.
    {"both", true, [](Tape& t, const Variable& x, const Rows& rows, const Group& group) {
       const Variable all = ops::all_gather_rows(t, x, rows, group);
       const Variable squares = ops::multiply(t, all, all);
       return ops::multiply(t, ops::reduce_scatter_rows(t, squares, rows, group), x);
     }}};

// The loss is a sum over all elements of all ranks, with weights.
TEST_P(Exchange, GradientsAgreeWithFiniteDifferences) {
  constexpr double kDifference = 1e-5;
  for (const Case& c : kCases) {
    for (const Rows& rows : kDivisions) {
      run(rows, [&](Communicator& world, const Group& group) {
        const auto mine = static_cast<std::size_t>(group.rank());
        const auto rows_of_x = [&](std::size_t rank) { return c.gathers_first ? rows[rank] : sum(rows); };
        const Tensor start = random_tensor({rows_of_x(mine), kWidth}, DType::f64, mine);
        Tape tape;
        const Variable x(start.copy());
        const Variable y = c.run(tape, x, rows, group);
        const Tensor weights = random_tensor(y.value().shape(), DType::f64, 90 + mine);
        tape.backward(y, weights);
        ASSERT_TRUE(x.has_gradient());
        for (std::size_t rank = 0; rank < rows.size(); ++rank) {
          for (std::int64_t e = 0; e < rows_of_x(rank) * kWidth; ++e) {
            const auto value_at = [&](double shift) {
              Tensor moved = start.copy();
              if (rank == mine) moved.mutable_data<double>()[e] += shift;
              Tape forward(false);
              const Tensor result = c.run(forward, Variable(moved), rows, group).value();
              double loss = 0;
              for (std::int64_t i = 0; i < result.size(); ++i)
                loss += result.data<double>()[i] * weights.data<double>()[i];
              return world.sum(loss);
            };
            const double expected = (value_at(kDifference) - value_at(-kDifference)) / (2 * kDifference);
            if (rank != mine) continue;
            EXPECT_NEAR(x.gradient().data<double>()[e], expected, 1e-7 * (1 + std::abs(expected)))
                << c.name << " rank " << rank << " element " << e;
          }
        }
      });
    }
  }
}

TEST_P(Exchange, RowsThatDoNotFitAreRefused) {
  run({2, 3}, [](Communicator&, const Group& group) {
    Tape tape;
    const Variable x(Tensor::zeros({7, kWidth}, DType::f32));
    EXPECT_THROW(ops::all_gather_rows(tape, x, {2, 3}, group), InternalError);
    EXPECT_THROW(ops::reduce_scatter_rows(tape, x, {2, 3}, group), InternalError);
    EXPECT_THROW(ops::reduce_scatter_rows(tape, x, {7}, group), InternalError);
  });
}

INSTANTIATE_TEST_SUITE_P(Forms, Exchange, ::testing::Values(false, true), [](const auto& instance) {
  return instance.param ? "ThroughDeviceTransport" : "ThroughTheHost";
});

}  // namespace
}  // namespace hstu::testing_exchange
