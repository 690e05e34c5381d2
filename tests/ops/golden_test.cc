// The ops in double against the plain PyTorch form of the same formulas.
#include "support/golden.h"

#include <numeric>

#include <gtest/gtest.h>

#include "hstu/ops/action_rows.h"
#include "hstu/ops/attention.h"
#include "hstu/ops/gate.h"
#include "hstu/ops/gather_sum.h"
#include "hstu/ops/linear.h"
#include "hstu/ops/norm.h"

namespace hstu {
namespace {

using testing::expect_golden;
using testing::Golden;

TEST(GoldenOp, Linear) {
  const Golden g("linear");
  Tape tape;
  const Variable x = g.variable("x"), weight = g.variable("weight"), bias = g.variable("bias");
  const Variable y = ops::linear(tape, x, weight, bias);
  tape.backward(y, g.tensor("dy"));
  expect_golden(y.value(), g.tensor("y"), "y");
  expect_golden(x.gradient(), g.tensor("dx"), "dx");
  expect_golden(weight.gradient(), g.tensor("dweight"), "dweight");
  expect_golden(bias.gradient(), g.tensor("dbias"), "dbias");
}

using Norm = Variable (*)(Tape&, const Variable&, const Variable&, const Variable&, double);

void check_norm(const std::string& name, Norm norm) {
  const Golden g(name);
  Tape tape;
  const Variable x = g.variable("x"), weight = g.variable("weight"), bias = g.variable("bias");
  const Variable y = norm(tape, x, weight, bias, g.scalar("eps"));
  tape.backward(y, g.tensor("dy"));
  expect_golden(y.value(), g.tensor("y"), "y");
  expect_golden(x.gradient(), g.tensor("dx"), "dx");
  expect_golden(weight.gradient(), g.tensor("dweight"), "dweight");
  expect_golden(bias.gradient(), g.tensor("dbias"), "dbias");
}

TEST(GoldenOp, LayerNorm) {
  check_norm("layer_norm", ops::layer_norm);
}
TEST(GoldenOp, SwishLayerNorm) {
  check_norm("swish_layer_norm", ops::swish_layer_norm);
}

TEST(GoldenOp, Gate) {
  const Golden g("gate");
  Tape tape;
  const Variable u = g.variable("u_pre"), o = g.variable("o"), weight = g.variable("weight"),
                 bias = g.variable("bias");
  const Variable cat = ops::gate(tape, ops::GateForm::concat, u, o, weight, bias, g.scalar("eps"), {});
  tape.backward(cat, g.tensor("dcat"));
  expect_golden(cat.value(), g.tensor("cat"), "cat");
  expect_golden(u.gradient(), g.tensor("du_pre"), "du_pre");
  expect_golden(o.gradient(), g.tensor("d_o"), "d_o");
  expect_golden(weight.gradient(), g.tensor("dweight"), "dweight");
  expect_golden(bias.gradient(), g.tensor("dbias"), "dbias");
}

// Columns [begin, end) of a matrix.
Tensor columns(const Tensor& x, std::int64_t begin, std::int64_t end) {
  Tensor y = Tensor::empty({x.rows(), end - begin}, DType::f64);
  for (std::int64_t r = 0; r < x.rows(); ++r) {
    for (std::int64_t c = begin; c < end; ++c) {
      y.mutable_data<double>()[r * y.cols() + c - begin] = x.data<double>()[r * x.cols() + c];
    }
  }
  return y;
}

TEST(GoldenOp, Attention) {
  const Golden g("attention");
  const Tensor uvqk = g.tensor("uvqk");
  const std::int64_t w = uvqk.cols() / 4;
  ops::AttentionShape shape;
  shape.heads = g.values<std::int64_t>("heads").at(0);
  shape.head_dim = w / shape.heads;
  shape.alpha = g.scalar("alpha");
  shape.offsets = g.tensor("offsets");
  shape.sample_scale = g.tensor("scale");
  Tape tape;
  const Variable all(uvqk);
  const Variable o = ops::attention(tape, {all, 2 * w, w}, {all, 3 * w, w}, {all, w, w}, shape);
  // Another operation gives the rest of the gradient.
  all.gradient_columns({0, w});
  tape.backward(o, g.tensor("d_o"));
  expect_golden(o.value(), g.tensor("o"), "o");
  expect_golden(columns(all.gradient(), 2 * w, 3 * w), g.tensor("dq"), "dq");
  expect_golden(columns(all.gradient(), 3 * w, 4 * w), g.tensor("dk"), "dk");
  expect_golden(columns(all.gradient(), w, 2 * w), g.tensor("dv"), "dv");
}

Tensor u8_tensor(const std::vector<std::uint8_t>& values) {
  return Tensor::from<std::uint8_t>({static_cast<std::int64_t>(values.size())}, values);
}

Tensor as_rows(const std::vector<std::int64_t>& values) {
  return ops::row_index({values.begin(), values.end()});
}

TEST(GoldenOp, PositionAndTime) {
  const Golden g("position_time");
  Tape tape;
  const Variable x = g.variable("x"), position = g.variable("position"), time = g.variable("time");
  std::vector<std::int32_t> every(static_cast<std::size_t>(x.rows()));
  std::iota(every.begin(), every.end(), 0);
  const Variable y = ops::gather_sum(tape,
                                     {{x, ops::row_index(every), std::sqrt(static_cast<double>(x.cols()))},
                                      {position, as_rows(g.values<std::int64_t>("positions")), 1},
                                      {time, as_rows(g.values<std::int64_t>("buckets")), 1}},
                                     {});
  tape.backward(y, g.tensor("dy"));
  expect_golden(y.value(), g.tensor("y"), "y");
  expect_golden(x.gradient(), g.tensor("dx"), "dx");
  expect_golden(position.gradient(), g.tensor("dposition"), "dposition");
  expect_golden(time.gradient(), g.tensor("dtime"), "dtime");
}

TEST(GoldenOp, ContextualTokens) {
  const Golden g("contextual");
  const Tensor rows = g.tensor("rows");  // (C, B, E)
  const std::int64_t c = rows.shape()[0], b = rows.shape()[1], e = rows.shape()[2];
  Tape tape;
  const Variable x(rows.reshaped({c * b, e})), weight = g.variable("weight"), bias = g.variable("bias");
  const Variable y = ops::grouped_linear(tape, x, weight, bias);  // (C * B, D); the golden y is (B, C, D)
  const Tensor expected = g.tensor("y"), dy = g.tensor("dy");
  const std::int64_t d = bias.cols();
  const auto by_feature = [&](const Tensor& from) {
    Tensor to = Tensor::empty({c * b, d}, DType::f64);
    for (std::int64_t i = 0; i < c * b; ++i) {
      std::copy_n(from.data<double>() + (i % b * c + i / b) * d, d, to.mutable_data<double>() + i * d);
    }
    return to;
  };
  tape.backward(y, by_feature(dy));
  expect_golden(y.value(), by_feature(expected), "y");
  expect_golden(x.gradient(), g.tensor("drows"), "drows");
  expect_golden(weight.gradient(), g.tensor("dweight"), "dweight");
  expect_golden(bias.gradient(), g.tensor("dbias"), "dbias");
}

// The distinct actions once, candidates in the last row: gathering them gives the golden rows.
TEST(GoldenOp, ActionRows) {
  const Golden g("action_encoder");
  const auto actions = g.values<std::uint8_t>("actions");
  const auto bits = g.values<std::int64_t>("bits");
  const auto candidates = static_cast<std::size_t>(g.values<std::int64_t>("candidates").at(0));
  Tape tape;
  const Variable rows = ops::action_rows(tape, g.variable("table"), g.variable("target"), u8_tensor(actions),
                                         u8_tensor({bits.begin(), bits.end()}));
  std::vector<std::int32_t> index(actions.size() + candidates, static_cast<std::int32_t>(actions.size()));
  std::iota(index.begin(), index.begin() + static_cast<std::ptrdiff_t>(actions.size()), 0);
  const Variable features = ops::gather_rows(tape, rows, ops::row_index(index));
  expect_golden(features.value(), g.tensor("features"), "features");
}

}  // namespace
}  // namespace hstu
