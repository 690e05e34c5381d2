#include "hstu/tensor/tape.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hstu {
namespace {

using testing::ElementsAre;

Tensor number(double value) {
  return Tensor::from<double>({1}, {value});
}
double of(const Tensor& tensor) {
  return tensor.data<double>()[0];
}

// to's gradient = or += value.
void give(const Variable& to, double value) {
  if (!to.needs_gradient()) return;
  GradientSlot slot = to.gradient_slot();
  double& target = slot.tensor.mutable_data<double>()[0];
  target = slot.accumulate ? target + value : value;
}

// y = sum of factor * x over the inputs; notes when its backward pass runs.
struct Sums {
  Tape& tape;
  std::vector<std::string> order;

  Variable operator()(const std::string& name, const std::vector<Variable>& inputs, double factor = 1) {
    double sum = 0;
    for (const Variable& x : inputs) sum += x.defined() ? factor * of(x.value()) : 0;
    return tape.record(number(sum), inputs, [this, name, inputs, factor](const Tensor& dy) {
      order.push_back(name);
      for (const Variable& x : inputs) give(x, factor * of(dy));
    });
  }
  // Notes which gradients are final, and when.
  void note_final() {
    tape.on_final([this](const Parameter& p) {
      order.push_back("final " + p.name + " " + std::to_string(static_cast<int>(of(p.gradient))));
    });
  }
};

Parameter parameter(const std::string& name, double value) {
  return {name, number(value), number(0)};
}

TEST(Tape, ReplaysBackwardsAndAddsUpTheUses) {
  Tape tape;
  Sums sum{tape, {}};
  const Variable x(number(2)), y(number(3));
  const Variable a = sum("a", {x, y}, 10), b = sum("b", {a, x}, 2), c = sum("c", {b, a});
  tape.backward(c);
  EXPECT_EQ(of(c.value()), 50 + 104);
  EXPECT_THAT(sum.order, ElementsAre("c", "b", "a"));
  EXPECT_EQ(of(a.gradient()), 3);
  EXPECT_EQ(of(x.gradient()), 32);  // through a three times 10, through b 2
  EXPECT_EQ(of(y.gradient()), 30);
}

TEST(Tape, AddsToTheGradientAParameterHas) {
  Parameter p = parameter("p", 1);
  p.gradient.mutable_data<double>()[0] = 100;
  Tape tape;
  Sums sum{tape, {}};
  tape.backward(sum("y", {Variable(p), Variable(p)}, 3));
  EXPECT_EQ(of(p.gradient), 106);
}

TEST(Tape, PassesOverWhatNeedsNoGradientOrGotNone) {
  Tape tape;
  Sums sum{tape, {}};
  const Variable fixed = Variable::constant(number(1)), x(number(1));
  const Variable constant = sum("constant", {fixed, Variable()}), unused = sum("unused", {x});
  EXPECT_FALSE(constant.needs_gradient());
  tape.backward(sum("y", {constant, x}));
  EXPECT_THAT(sum.order, ElementsAre("y"));
  EXPECT_FALSE(fixed.has_gradient());
  EXPECT_FALSE(unused.has_gradient());
}

TEST(Tape, WithoutRecordingKeepsNothing) {
  Tape tape(false);
  Sums sum{tape, {}};
  const Variable x(number(1)), y = sum("y", {x});
  EXPECT_FALSE(y.needs_gradient());
  EXPECT_THROW(tape.backward(y), InternalError);
}

TEST(Tape, ReleasesWhatTheForwardPassKeptOnTheWay) {
  Tape tape;
  auto kept = std::make_shared<int>();
  const std::weak_ptr<int> first = kept;
  bool alive_in_earlier_step = true;
  const Variable x(number(1));
  Variable y = tape.record(number(1), {x}, [&, x](const Tensor& dy) {
    alive_in_earlier_step = !first.expired();
    give(x, of(dy));
  });
  y = tape.record(number(1), {y}, [y, kept](const Tensor& dy) { give(y, of(dy)); });
  kept.reset();
  EXPECT_FALSE(first.expired());
  tape.backward(y);
  EXPECT_FALSE(alive_in_earlier_step);
  EXPECT_EQ(of(x.gradient()), 1);
}

TEST(Tape, WantsALossOfOneElementOrAGradientThatFits) {
  Tape tape;
  const Variable x(Tensor::zeros({2}, DType::f64));
  EXPECT_THROW(tape.backward(x), InternalError);
  EXPECT_THROW(tape.backward(x, number(1)), InternalError);
  EXPECT_THROW(tape.backward(x, Tensor::zeros({2}, DType::f32)), InternalError);
}

TEST(Tape, GivesGradientsMemoryOfItsContext) {
  const Context context = make_context(Device::host());
  Tape tape(context);
  EXPECT_EQ(tape.context().memory, context.memory);
  const Variable x(number(1));
  const Variable y = tape.record(Tensor::empty({1000}, DType::f64, tape.context()), {x},
                                 [](Tensor& dy) { EXPECT_EQ(dy.size(), 1000); });
  EXPECT_EQ(context.memory->figures().in_use, 8000);
  const Tensor gradient = Tensor::zeros({1000}, DType::f64);
  tape.backward(y, gradient);
  EXPECT_EQ(context.memory->figures().peak, 16000);
}

TEST(TapeOnFinal, NamesAParameterWhenNoStepIsLeftThatUsesIt) {
  Parameter early = parameter("early", 1), shared = parameter("shared", 2), late = parameter("late", 3);
  Tape tape;
  Sums sum{tape, {}};
  sum.note_final();
  const Variable a = sum("a", {Variable(early), Variable(shared)}, 2);
  const Variable b = sum("b", {a, Variable(shared)}, 5);
  const Variable c = sum("c", {b, Variable(late), Variable(late)});
  tape.backward(c);
  EXPECT_THAT(sum.order, ElementsAre("c", "final late 2", "b", "a", "final early 10", "final shared 15"));
}

// A step that no gradient reaches cannot add either, so it must not hold its parameters back.
TEST(TapeOnFinal, CountsAStepWithoutGradientAsDone) {
  Parameter p = parameter("p", 1), unused = parameter("unused", 1);
  Tape tape;
  Sums sum{tape, {}};
  std::vector<std::string> order;
  tape.on_final([&](const Parameter& q) { order.push_back(q.name); });
  const Variable y = sum("y", {Variable(p)});
  sum("dead end", {Variable(p), Variable(unused)});
  tape.backward(y);
  EXPECT_THAT(order, ElementsAre("unused", "p"));
  EXPECT_EQ(of(p.gradient), 1);
}

TEST(Tape, OperationsGiveColumnsOfOneGradient) {
  Tape tape;
  const Variable x(Tensor::from<double>({1, 3}, {1, 2, 3}));
  const auto product = [&](std::int64_t first, std::int64_t end, double factor) {
    return tape.record(number(0), {x}, [=](const Tensor& dy) {
      GradientSlot slot = x.gradient_columns({first, end});
      for (std::int64_t c = first; c < end; ++c) {
        double& to = slot.tensor.mutable_data<double>()[c];
        to = factor * of(dy) + (slot.accumulate ? to : 0);
      }
    });
  };
  Sums sum{tape, {}};
  tape.backward(sum("sum", {product(0, 2, 5), product(2, 3, 7), product(0, 2, 11)}));
  EXPECT_TRUE(x.has_gradient());
  EXPECT_THAT(std::vector<double>(x.gradient().data<double>(), x.gradient().data<double>() + 3),
              ElementsAre(16, 16, 7));
}

TEST(Tape, AGradientThatLacksColumnsIsADefect) {
  Tape tape;
  Sums sum{tape, {}};
  const Variable x(Tensor::from<double>({1, 3}, {1, 2, 3}));
  const Variable y = tape.record(Tensor::from<double>({1, 3}, {1, 2, 3}), {x}, [](const Tensor&) {});
  const Variable some = tape.record(number(0), {y}, [=](const Tensor&) { y.gradient_columns({0, 2}); });
  EXPECT_THROW(tape.backward(sum("sum", {some})), InternalError);
  x.gradient_columns({0, 2});
  EXPECT_THROW(x.gradient_columns({1, 3}), InternalError);  // overlaps
}

TEST(Tape, ADroppedValueIsComputedWhenItIsReadAgain) {
  const Variable kept(number(2)), dropped(number(3));
  kept.drop_value();  // no operation can recompute it
  EXPECT_EQ(of(kept.value()), 2);
  int computed = 0;
  dropped.recomputed_by([&] { return number(3 + ++computed); });
  dropped.drop_value();
  EXPECT_EQ(of(dropped.value()), 4);
  EXPECT_EQ(of(dropped.value()), 4);
  EXPECT_EQ(computed, 1);
}

TEST(TapeRecompute, ForgetsOperationsAndRecordsThemAgainInTheBackwardPass) {
  Parameter p = parameter("p", 5);
  Tape tape;
  Sums sum{tape, {}};
  std::weak_ptr<int> kept;
  const Variable x(number(2)), a = sum("a", {x}, 3);
  const Variable y = tape.recompute([&] {
    sum.order.emplace_back("compute");
    const auto own = std::make_shared<int>();
    kept = own;
    const Variable b = sum("b", {a, Variable(p)}, 2);
    const Variable c = sum("c", {b, a}, 10);
    return tape.record(c.value(), {c}, [c, own](const Tensor& dy) { give(c, of(dy)); });
  });
  EXPECT_EQ(of(y.value()), 10 * (2 * (6 + 5) + 6));
  EXPECT_TRUE(kept.expired());
  tape.backward(sum("d", {y, a}));
  EXPECT_THAT(sum.order, ElementsAre("compute", "d", "compute", "c", "b", "a"));
  EXPECT_EQ(of(a.gradient()), 1 + 10 + 20);
  EXPECT_EQ(of(x.gradient()), 93);
  EXPECT_EQ(of(p.gradient), 20);
}

TEST(TapeRecompute, Nests) {
  for (const bool recording : {true, false}) {
    Tape tape(recording);
    Sums sum{tape, {}};
    int computed = 0;
    const Variable x(number(2));
    const Variable y = tape.recompute([&] {
      const Variable inner = tape.recompute([&] { return ++computed, sum("inner", {x}, 3); });
      return sum("outer", {inner, x}, 5);
    });
    EXPECT_EQ(of(y.value()), 40);
    EXPECT_EQ(computed, 1);
    EXPECT_EQ(y.needs_gradient(), recording);
    if (!recording) continue;
    tape.backward(y);
    EXPECT_EQ(computed, 3);
    EXPECT_EQ(of(x.gradient()), 20);
  }
}

TEST(TapeOnFinal, WaitsForWhatIsComputedAgain) {
  Parameter shared = parameter("shared", 1), inner = parameter("inner", 1), unused = parameter("unused", 1);
  Tape tape;
  Sums sum{tape, {}};
  sum.note_final();
  const Variable a = sum("a", {Variable(shared)}, 2);
  const auto recomputed = [&](const std::string& name, const Parameter& p) {
    return tape.recompute([&sum, &shared, &p, a, name] {
      const Variable first = sum(name + " first", {a, Variable(p)}, 5);
      return sum(name + " second", {first, Variable(shared), Variable(p)});
    });
  };
  const Variable b = recomputed("b", inner);
  recomputed("dead end", unused);
  sum.order.clear();
  tape.backward(sum("c", {b, Variable(shared)}));
  EXPECT_THAT(sum.order, ElementsAre("c", "final unused 0", "b second", "b first", "final inner 6", "a",
                                     "final shared 12"));
}

}  // namespace
}  // namespace hstu
