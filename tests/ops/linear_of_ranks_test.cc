// Products with the exchange beside them against the product and the exchange one after the other, by ranks
// that are threads, on processors and as messages between devices (the staged transport).
#include "hstu/ops/linear_of_ranks.h"

#include <memory>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "hstu/comm/thread_group.h"
#include "hstu/ops/elementwise.h"
#include "hstu/ops/exchange.h"
#include "support/op_cases.h"

namespace hstu::testing_linear_of_ranks {
namespace {

using testing::random_tensor;
using Rows = std::vector<std::int64_t>;

constexpr std::int64_t kIn = 3, kColumns = 8, kSomeWidth = 5;
// Rows of each rank.
const std::vector<Rows> kDivisions{{2, 3}, {3, 0, 2}, {0, 4}, {1, 1, 1}, {5}};
const std::vector<ColumnRange> kSome{{0, 2}, {4, 7}};

class LinearOfRanks : public ::testing::TestWithParam<bool> {
 protected:
  template <typename Body>
  static void run(const Body& body) {
    for (const Rows& rows : kDivisions) {
      run_ranks(static_cast<int>(rows.size()), [&](Communicator& world) {
        const auto comm = world.split(0, "tensor");
        const auto transport = GetParam() ? staged_transport(*comm) : nullptr;
        body(rows, Group{*comm, transport.get()});
      });
    }
  }
};

Variable random(const Shape& shape, std::uint64_t seed) {
  return Variable(random_tensor(shape, DType::f64, seed));
}

void expect_near(const Tensor& found, const Tensor& expected, const char* what) {
  ASSERT_EQ(found.shape(), expected.shape()) << what;
  for (std::int64_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found.data<double>()[i], expected.data<double>()[i], 1e-13) << what << " element " << i;
}

std::int64_t sum(const Rows& rows) {
  return std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
}

TEST_P(LinearOfRanks, AProductOfGatheredRowsIsThatBehindTheExchange) {
  run([](const Rows& rows, const Group& group) {
    for (const std::int64_t silu_from : {-1, 0, 2}) {
      const auto me = static_cast<std::size_t>(group.rank());
      Tensor values[2], activated[2], gradients[2][3], gathered[2];
      for (const bool beside : {false, true}) {
        Tape tape;
        const Variable own = random({rows[me], kIn}, me), weight = random({kIn, kColumns}, 10 + me),
                       bias = random({kColumns}, 20 + me);
        ops::GatheredLinear y;
        if (beside) {
          y = ops::linear_of_gathered(tape, own, rows, group, weight, bias, kSome, silu_from);
        } else {
          y.x = ops::all_gather_rows(tape, own, rows, group);
          if (silu_from < 0)
            y.product = {ops::linear_columns(tape, y.x, weight, bias, kSome), {}};
          else
            y.product = ops::linear_silu(tape, y.x, weight, bias, kSome, silu_from);
        }
        values[beside] = y.product.y.value();
        gathered[beside] = y.x.value();
        if (silu_from >= 0) activated[beside] = y.product.activated.value();
        y.x.drop_value();  // the backward pass gathers once more
        tape.backward(y.product.y, random_tensor({sum(rows), kSomeWidth}, DType::f64, 30 + me));
        gradients[beside][0] = own.gradient();
        gradients[beside][1] = weight.gradient();
        gradients[beside][2] = bias.gradient();
      }
      expect_near(values[1], values[0], "y");
      expect_near(gathered[1], gathered[0], "x");
      if (silu_from >= 0) expect_near(activated[1], activated[0], "silu");
      for (int g = 0; g < 3; ++g) expect_near(gradients[1][g], gradients[0][g], "gradient");
    }
  });
}

TEST_P(LinearOfRanks, AProductWhoseSumsAreScatteredIsThatBeforeTheExchange) {
  run([](const Rows& rows, const Group& group) {
    for (const bool has_residual : {false, true}) {
      const auto me = static_cast<std::size_t>(group.rank());
      Tensor values[2], gradients[2][3];
      for (const bool beside : {false, true}) {
        Tape tape;
        const Variable x = random({sum(rows), kIn}, me), weight = random({kIn, kColumns}, 10 + me),
                       residual = has_residual ? random({rows[me], kColumns}, 20 + me) : Variable();
        Variable y;
        if (beside) {
          y = ops::scattered_linear(tape, x, weight, rows, group, residual);
        } else {
          y = ops::reduce_scatter_rows(tape, ops::linear(tape, x, weight, {}), rows, group);
          if (has_residual) y = ops::add(tape, y, residual);
        }
        values[beside] = y.value();
        tape.backward(y, random_tensor({rows[me], kColumns}, DType::f64, 30 + me));
        gradients[beside][0] = x.gradient();
        gradients[beside][1] = weight.gradient();
        if (has_residual) gradients[beside][2] = residual.gradient();
      }
      expect_near(values[1], values[0], "y");
      for (int g = 0; g < (has_residual ? 3 : 2); ++g)
        expect_near(gradients[1][g], gradients[0][g], "gradient");
    }
  });
}

TEST_P(LinearOfRanks, RowsThatDoNotFitAreRefused) {
  run([](const Rows& rows, const Group& group) {
    Tape tape;
    const Variable x = random({sum(rows) + 1, kIn}, 1), weight = random({kIn, kColumns}, 2);
    EXPECT_THROW(ops::scattered_linear(tape, x, weight, rows, group, {}), InternalError);
    EXPECT_THROW(ops::linear_of_gathered(tape, x, rows, group, weight, {}, kSome, -1), InternalError);
  });
}

INSTANTIATE_TEST_SUITE_P(Forms, LinearOfRanks, ::testing::Values(false, true), [](const auto& instance) {
  return instance.param ? "ThroughDeviceTransport" : "ThroughTheHost";
});

}  // namespace
}  // namespace hstu::testing_linear_of_ranks
