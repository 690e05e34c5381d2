// The softmax over a catalogue against the plain form, finite differences, and itself on several ranks.
#include "hstu/loss/full_softmax.h"

#include <cmath>
#include <fstream>
#include <limits>
#include <mutex>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/base/error.h"
#include "hstu/base/threads.h"
#include "hstu/comm/groups.h"
#include "hstu/comm/thread_group.h"
#include "loss/plain_catalogue.h"
#include "sanitizers.h"
#include "support/tensor_values.h"

namespace hstu::testing_full_softmax {
namespace {

using testing::naive_softmax;
using testing::NaiveSoftmax;
using testing::PlainCatalogue;
using testing::softmax_inputs;
using testing::SoftmaxCase;
using testing::SoftmaxInputs;
using testing::values_of;

// Blocks of items and of positions that are whole, and that are not; more than one chunk of positions.
const SoftmaxCase kCases[] = {{1, 1, 1},
                              {3, 2, 5},
                              {50, 37, 16},
                              {48, 1024, 64},
                              {130, 1500, 50},
                              {100, 2100, 300},
                              {4200, 70, 12},
                              {60, 90, 20, 1.5, false},
                              {70, 1030, 33, 4, false}};

struct Outcome {
  double loss = 0;
  Tensor dvectors, drows;
};
Outcome outcome_of(const SoftmaxCase& c, const SoftmaxInputs& in, double divisor,
                   const Tensor& weights = {}) {
  const PlainCatalogue catalogue(in.ids, in.rows);
  Tape tape;
  const Variable vectors(in.vectors);
  const Variable loss = loss::full_softmax(tape, vectors, in.targets, catalogue.rows(),
                                           {.scale = c.scale, .unit = c.unit, .weights = weights}, divisor);
  tape.backward(loss);
  Outcome result{0, vectors.gradient(), catalogue.gradient()};
  with_float_type(loss.value().dtype(),
                  [&]<typename T>() { result.loss = double(loss.value().data<T>()[0]); });
  return result;
}

// `tolerance` relative to the largest.
template <typename T>
void expect_near(const Tensor& found, const std::vector<double>& expected, double tolerance) {
  double most = 0, worst = 0;
  ASSERT_EQ(found.size(), std::ssize(expected));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    most = std::max(most, std::abs(expected[i]));
    const double error = std::abs(double(found.data<T>()[i]) - expected[i]);
    worst = error <= worst ? worst : error;  // also a NaN
  }
  EXPECT_LE(worst, tolerance * most + 1e-12);
}

TEST(FullSoftmax, IsThePlainFormWithoutItsLogits) {
  for (const SoftmaxCase& c : kCases) {
    SCOPED_TRACE(::testing::Message() << c.positions << " x " << c.items << " x " << c.width);
    const double divisor = static_cast<double>(c.positions);
    const SoftmaxInputs in = softmax_inputs(c, DType::f32), wide = softmax_inputs(c, DType::f64);
    const NaiveSoftmax expected = naive_softmax<float>(c, in, divisor);
    const Outcome found = outcome_of(c, in, divisor);
    EXPECT_NEAR(found.loss, expected.loss, 1e-5 * (1 + std::abs(expected.loss)));
    expect_near<float>(found.dvectors, expected.dvectors, 1e-5);
    expect_near<float>(found.drows, expected.drows, 1e-5);

    const NaiveSoftmax exact = naive_softmax<double>(c, wide, divisor);
    const Outcome in_double = outcome_of(c, wide, divisor);
    EXPECT_NEAR(in_double.loss, exact.loss, 1e-12 * (1 + std::abs(exact.loss)));
    expect_near<double>(in_double.dvectors, exact.dvectors, 1e-12);
    expect_near<double>(in_double.drows, exact.drows, 1e-12);
  }
}

double loss_at(const SoftmaxCase& c, const SoftmaxInputs& in) {
  const PlainCatalogue catalogue(in.ids, in.rows);
  Tape forward(false);
  return loss::full_softmax(forward, Variable::constant(in.vectors), in.targets, catalogue.rows(),
                            {.scale = c.scale, .unit = c.unit}, 1)
      .value()
      .data<double>()[0];
}

TEST(FullSoftmax, GradientsAgreeWithFiniteDifferences) {
  for (const SoftmaxCase& c : {SoftmaxCase{5, 7, 4, 20, true}, SoftmaxCase{5, 7, 4, 1.5, false}}) {
    SoftmaxInputs in = softmax_inputs(c, DType::f64);
    const Outcome found = outcome_of(c, in, 1);
    for (const bool of_vectors : {true, false}) {
      Tensor& input = of_vectors ? in.vectors : in.rows;
      const Tensor& gradient = of_vectors ? found.dvectors : found.drows;
      for (std::int64_t i = 0; i < input.size(); ++i) {
        const double start = input.data<double>()[i];
        double losses[2];
        for (const int side : {0, 1}) {
          input.mutable_data<double>()[i] = start + (side == 0 ? -1e-6 : 1e-6);
          losses[side] = loss_at(c, in);
        }
        input.mutable_data<double>()[i] = start;
        const double expected = (losses[1] - losses[0]) / 2e-6;
        EXPECT_NEAR(gradient.data<double>()[i], expected, 1e-6 * (1 + std::abs(expected)))
            << of_vectors << " " << i;
      }
    }
  }
}

TEST(FullSoftmax, HasTheSameBitsWithAnyNumberOfThreads) {
  const SoftmaxCase c{300, 1500, 50};
  const SoftmaxInputs in = softmax_inputs(c, DType::f32);
  const int before = threads();
  std::vector<std::vector<float>> results;
  for (const int n : {1, 2, 3, 5}) {
    set_threads(n);
    const Outcome found = outcome_of(c, in, 300);
    auto all = values_of<float>(found.dvectors), rows = values_of<float>(found.drows);
    all.insert(all.end(), rows.begin(), rows.end());
    all.push_back(static_cast<float>(found.loss));
    results.push_back(all);
  }
  set_threads(before);
  for (const auto& result : results) EXPECT_EQ(result, results.front());
}

// e^1000 is no number: the largest logit is taken off first.
TEST(FullSoftmax, IsFiniteForLogitsOfAnySize) {
  const SoftmaxCase c{20, 1100, 8, 5000, false};
  const SoftmaxInputs in = softmax_inputs(c, DType::f32);
  const Outcome found = outcome_of(c, in, 1);
  EXPECT_NEAR(found.loss / naive_softmax<float>(c, in, 1).loss, 1, 1e-5);
  for (const float g : values_of<float>(found.dvectors)) EXPECT_TRUE(std::isfinite(g));
  for (const float g : values_of<float>(found.drows)) EXPECT_TRUE(std::isfinite(g));
}

// The difference of neighbouring ids above 2^24, which float cannot express, decides.
TEST(FullSoftmax, RefusesATargetThatTheCatalogueDoesNotHave) {
  const SoftmaxCase c{4, 40, 8};
  SoftmaxInputs in = softmax_inputs(c, DType::f32);
  in.targets.mutable_data<std::int64_t>()[2] = (std::int64_t{1} << 40) + 1;
  try {
    outcome_of(c, in, 1);
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("item 1099511627777"));
  }
}

// Memory of the process at its most, in bytes.
std::int64_t high_water() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word != "VmHWM:") continue;
    std::int64_t kib = 0;
    status >> kib;
    return kib * 1024;
  }
  return 0;
}

// Blocks are whole at this size, so a larger catalogue and more positions need no more.
TEST(FullSoftmax, TakesLessThan64MegabytesBesideTablesAndGradients) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer has memory of its own";
  const SoftmaxCase c{4200, 2100, 256};
  const SoftmaxInputs in = softmax_inputs(c, DType::f32);
  const std::int64_t before = high_water();
  const Outcome found = outcome_of(c, in, 1);
  const std::int64_t known = static_cast<std::int64_t>(found.dvectors.bytes() + 2 * found.drows.bytes());
  ASSERT_GT(before, 0);
  EXPECT_LT(high_water() - before - known, std::int64_t{64} << 20);
}

// Positions [begin, end) of the ranks; some have none.
std::vector<std::int64_t> begins_of_ranks(std::int64_t positions, int ranks) {
  std::vector<std::int64_t> begins{0};
  for (int r = 1; r < ranks; ++r) begins.push_back(r == 2 ? begins.back() : positions * r / ranks);
  begins.push_back(positions);
  return begins;
}

TEST(FullSoftmax, IsTheSameWithItemsAndPositionsDividedOverRanks) {
  const SoftmaxCase c{150, 1300, 20};
  const SoftmaxInputs in = softmax_inputs(c, DType::f64);
  Tensor weights = Tensor::empty({c.positions}, DType::f32);
  for (std::int64_t i = 0; i < c.positions; ++i)
    weights.mutable_data<float>()[i] = static_cast<float>(i % 5) / 2;
  const Outcome whole = outcome_of(c, in, 150, weights);
  for (const int ranks : {1, 2, 4}) {
    const std::vector<std::int64_t> begins = begins_of_ranks(c.positions, ranks);
    std::mutex mutex;
    double loss = 0;
    run_ranks(ranks, [&](Communicator& comm) {
      const Group world{comm};
      const Groups groups{world, {}, {}, world};
      Context context = host_context();
      context.groups = &groups;
      const PlainCatalogue catalogue(in.ids, in.rows, comm.rank(), ranks);
      const auto begin = begins[static_cast<std::size_t>(comm.rank())],
                 end = begins[static_cast<std::size_t>(comm.rank()) + 1];
      Tape tape(context);
      const Variable vectors(in.vectors.row_range(begin, end).copy());
      const Variable part = loss::full_softmax(
          tape, vectors, in.targets.row_range(begin, end), catalogue.rows(),
          {.scale = c.scale, .unit = c.unit, .weights = weights.row_range(begin, end)}, 150);
      tape.backward(part);
      const std::scoped_lock lock(mutex);
      loss += part.value().data<double>()[0];
      for (std::int64_t i = 0; i < vectors.gradient().size(); ++i)
        ASSERT_NEAR(vectors.gradient().data<double>()[i], whole.dvectors.data<double>()[begin * c.width + i],
                    1e-12);
      for (std::int64_t i = 0; i < catalogue.gradient().size(); ++i) {
        const std::int64_t row = catalogue.numbers()[static_cast<std::size_t>(i / c.width)];
        ASSERT_NEAR(catalogue.gradient().data<double>()[i],
                    whole.drows.data<double>()[row * c.width + i % c.width], 1e-12);
      }
    });
    EXPECT_NEAR(loss, whole.loss, 1e-12) << ranks << " ranks";
  }
}

}  // namespace
}  // namespace hstu::testing_full_softmax
