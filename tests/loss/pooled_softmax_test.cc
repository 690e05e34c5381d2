// The softmax over a pool against the plain form, on several ranks, and its correction by log-Q against the
// softmax over everything.
#include "hstu/loss/pooled_softmax.h"

#include <cmath>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/base/error.h"
#include "hstu/comm/groups.h"
#include "hstu/comm/thread_group.h"
#include "loss/gradients.h"
#include "loss/plain_catalogue.h"

namespace hstu::testing_pooled {
namespace {

using loss::Pool;
using loss::PoolForm;
using testing::random_tensor;

constexpr std::int64_t kPositions = 12, kItems = 9, kWidth = 4;
constexpr std::int64_t kCatalogueItems = 30;

std::vector<std::int64_t> pool_ids() {
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < kItems; ++i)
    ids.push_back(i == kItems - 1 ? std::int64_t{1} << 40 : 2 * i + 1);
  return ids;
}
constexpr std::int64_t kTargetNumbers[kPositions] = {0, 8, 3, 3, 3, 5, 5, 1, 0, 8, 8, 8};
constexpr std::int32_t kDraws[kItems] = {1, 0, 3, 0, 1, 0, 0, 2, 1};  // item 6 is in no pool
double frequency(std::int64_t item) {
  return 0.01 * static_cast<double>(1 + item);
}

struct PoolCase {
  const char* name;
  PoolForm form;
  bool corrected;
};
constexpr PoolCase kPoolCases[] = {
    {"uniform", PoolForm::uniform, false},   {"uniform, corrected", PoolForm::uniform, true},
    {"in-batch", PoolForm::in_batch, false}, {"in-batch, corrected", PoolForm::in_batch, true},
    {"mixed", PoolForm::mixed, false},       {"mixed, corrected", PoolForm::mixed, true}};
constexpr double kRate = 8.0 / kCatalogueItems;

// The pool of a rank that has the targets of positions [begin, end): items by number.
std::vector<std::int64_t> numbers_of(std::int64_t begin, std::int64_t end) {
  std::vector<bool> has(kItems, false);
  for (std::int64_t r = begin; r < end; ++r) has[static_cast<std::size_t>(kTargetNumbers[r])] = true;
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = 0; i < kItems; ++i)
    if (has[static_cast<std::size_t>(i)] || kDraws[i] > 0) numbers.push_back(i);
  return numbers;
}

Pool pool_of(const PoolCase& c, const Tensor& rows, std::int64_t begin, std::int64_t end) {
  const std::vector<std::int64_t> numbers = numbers_of(begin, end), all = pool_ids();
  const std::int64_t n = std::ssize(numbers);
  Tensor mine = Tensor::empty({n, kWidth}, rows.dtype());
  std::vector<std::int64_t> ids;
  std::vector<std::int32_t> occurrences, draws;
  std::vector<float> frequencies;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t number = numbers[static_cast<std::size_t>(i)];
    Tensor to = mine.row_range(i, i + 1);
    to.copy_from(rows.row_range(number, number + 1));
    ids.push_back(all[static_cast<std::size_t>(number)]);
    occurrences.push_back(
        static_cast<std::int32_t>(std::count(kTargetNumbers + begin, kTargetNumbers + end, number)));
    draws.push_back(kDraws[number]);
    frequencies.push_back(static_cast<float>(frequency(number)));
  }
  return {.form = c.form,
          .rows = Variable(mine),
          .ids = Tensor::from<std::int64_t>({n}, ids),
          .occurrences = Tensor::from<std::int32_t>({n}, occurrences),
          .draws = Tensor::from<std::int32_t>({n}, draws),
          .frequency = c.corrected ? Tensor::from<float>({n}, frequencies) : Tensor(),
          .rate = c.form == PoolForm::in_batch ? 0 : kRate};
}

Tensor targets_of(std::int64_t begin, std::int64_t end) {
  std::vector<std::int64_t> targets;
  for (std::int64_t r = begin; r < end; ++r)
    targets.push_back(pool_ids()[static_cast<std::size_t>(kTargetNumbers[r])]);
  return Tensor::from<std::int64_t>({end - begin}, targets);
}

// The weight w of an item in the pool of all positions.
double weight_of(const PoolCase& c, std::int64_t item) {
  const bool of_batch = c.form != PoolForm::uniform, drawn = c.form != PoolForm::in_batch;
  const auto occurrences = static_cast<double>(std::count(kTargetNumbers, kTargetNumbers + kPositions, item));
  const double count = (of_batch ? occurrences : 0) + (drawn ? kDraws[item] : 0);
  if (count == 0) return 0;
  const double q = (of_batch ? kPositions * static_cast<double>(static_cast<float>(frequency(item))) : 0) +
                   (drawn ? kRate : 0);
  if (c.corrected) return count / q;
  return of_batch ? 1 : count;
}

double plain_pooled(const PoolCase& c, const Tensor& vectors, const Tensor& rows) {
  double total = 0;
  for (std::int64_t r = 0; r < kPositions; ++r) {
    double sum = 0, positive = 0;
    for (std::int64_t i = 0; i < kItems; ++i) {
      double dot = 0, square = 0;
      for (std::int64_t e = 0; e < kWidth; ++e) {
        const double x = rows.data<double>()[i * kWidth + e];
        dot += x * vectors.data<double>()[r * kWidth + e];
        square += x * x;
      }
      const double s = 5 * dot / std::sqrt(square);
      if (i == kTargetNumbers[r]) positive = s;
      sum += (i == kTargetNumbers[r] ? 1 : weight_of(c, i)) * std::exp(s);
    }
    total += std::log(sum) - positive;
  }
  return total / kPositions;
}

Variable pooled(Tape& tape, const Variable& vectors, const Pool& pool, std::int64_t begin, std::int64_t end) {
  return loss::pooled_softmax(tape, vectors, targets_of(begin, end), pool, {.scale = 5, .unit = true},
                              kPositions);
}

TEST(PooledSoftmax, IsItsFormulaWithGradients) {
  for (const PoolCase& c : kPoolCases) {
    Tensor vectors = random_tensor({kPositions, kWidth}, DType::f64, 1),
           rows = random_tensor({kItems, kWidth}, DType::f64, 2);
    const auto loss = [&] {
      Tape forward(false);
      return pooled(forward, Variable::constant(vectors), pool_of(c, rows, 0, kPositions), 0, kPositions)
          .value()
          .data<double>()[0];
    };
    EXPECT_NEAR(loss(), plain_pooled(c, vectors, rows), 1e-11) << c.name;
    Tape tape;
    const Variable f(vectors);
    const Pool pool = pool_of(c, rows, 0, kPositions);
    tape.backward(pooled(tape, f, pool, 0, kPositions));
    testing::expect_gradient(vectors, f.gradient(), loss, c.name);
    Tensor drows = Tensor::zeros({kItems, kWidth}, DType::f64);
    const std::vector<std::int64_t> numbers = numbers_of(0, kPositions);
    for (std::int64_t i = 0; i < std::ssize(numbers); ++i) {
      const std::int64_t to = numbers[static_cast<std::size_t>(i)];
      Tensor row = drows.row_range(to, to + 1);
      row.copy_from(pool.rows.gradient().row_range(i, i + 1));
    }
    testing::expect_gradient(rows, drows, loss, c.name);
  }
}

// ranks draw the same, and merge what they have in common.
TEST(PooledSoftmax, IsTheSameOnAnyNumberOfRanks) {
  const Tensor vectors = random_tensor({kPositions, kWidth}, DType::f64, 1),
               rows = random_tensor({kItems, kWidth}, DType::f64, 2);
  for (const PoolCase& c : kPoolCases) {
    Tensor dvectors, drows;
    double whole = 0;
    for (const int ranks : {1, 2, 4}) {
      std::mutex mutex;
      double loss = 0;
      Tensor all_dvectors = Tensor::zeros(vectors.shape(), DType::f64),
             all_drows = Tensor::zeros(rows.shape(), DType::f64);
      run_ranks(ranks, [&](Communicator& comm) {
        const Group world{comm};
        const Groups groups{world, {}, {}, world};
        Context context = host_context();
        context.groups = &groups;
        const std::int64_t begin = kPositions * comm.rank() / ranks,
                           end = kPositions * (comm.rank() + 1) / ranks;
        Tape tape(context);
        const Variable f(vectors.row_range(begin, end).copy());
        const Pool pool = pool_of(c, rows, begin, end);
        const Variable part = pooled(tape, f, pool, begin, end);
        tape.backward(part);
        const std::scoped_lock lock(mutex);
        loss += part.value().data<double>()[0];
        Tensor to = all_dvectors.row_range(begin, end);
        to.copy_from(f.gradient());
        const std::vector<std::int64_t> numbers = numbers_of(begin, end);
        for (std::int64_t i = 0; i < pool.rows.gradient().size(); ++i)
          all_drows
              .mutable_data<double>()[numbers[static_cast<std::size_t>(i / kWidth)] * kWidth + i % kWidth] +=
              pool.rows.gradient().data<double>()[i];
      });
      if (ranks == 1) {
        whole = loss;
        dvectors = all_dvectors;
        drows = all_drows;
      }
      EXPECT_NEAR(loss, whole, 1e-12) << c.name << " " << ranks;
      for (std::int64_t i = 0; i < dvectors.size(); ++i)
        EXPECT_NEAR(all_dvectors.data<double>()[i], dvectors.data<double>()[i], 1e-12)
            << c.name << " " << ranks;
      for (std::int64_t i = 0; i < drows.size(); ++i)
        EXPECT_NEAR(all_drows.data<double>()[i], drows.data<double>()[i], 1e-12) << c.name << " " << ranks;
    }
  }
}

TEST(PooledSoftmax, RefusesAnItemWhoseFrequencyIsZero) {
  const Tensor vectors = random_tensor({kPositions, kWidth}, DType::f64, 1),
               rows = random_tensor({kItems, kWidth}, DType::f64, 2);
  Pool pool = pool_of({"", PoolForm::in_batch, true}, rows, 0, kPositions);
  pool.frequency.mutable_data<float>()[0] = 0;
  Tape tape;
  try {
    pooled(tape, Variable(vectors), pool, 0, kPositions);
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("item 1 is in the pool"));
  }
}

}  // namespace
}  // namespace hstu::testing_pooled
