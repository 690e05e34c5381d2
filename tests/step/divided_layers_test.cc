// HSTU layers whose heads the ranks of a tensor group share: outputs and gradients are those of one rank, in
// fp64, where only a mistake can make a difference of 1e-12.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "hstu/base/random.h"
#include "hstu/comm/groups.h"
#include "hstu/comm/thread_group.h"
#include "hstu/model/hstu_stack.h"
#include "hstu/step/dense_sums.h"

namespace hstu::testing_divided_layers {
namespace {

using Samples = std::vector<std::int64_t>;                  // their numbers
using Values = std::map<std::string, std::vector<double>>;  // by the name of a parameter, or by token

constexpr std::int64_t kDim = 6, kHeads = 4, kHeadDim = 5;
const std::vector<std::int64_t> kTokens{5, 1, 7, 3, 4, 2, 6, 9};  // of each sample

struct Case {
  std::string name;
  HstuLayerConfig layer = {};
  bool wants_some = false, has_mask = false;
};

std::vector<Case> cases() {
  const HstuLayerConfig concat{.dim = kDim, .heads = kHeads, .head_dim = kHeadDim};
  HstuLayerConfig nvidia = concat, retrieval = concat, again = concat;
  nvidia.gate = ops::GateForm::product;
  nvidia.recompute = {.norm = true, .silu = true, .gate = true, .layer = false};
  retrieval.gate = ops::GateForm::product;
  retrieval.norm_affine = retrieval.uvqk_bias = false;
  retrieval.output_bias = true;
  retrieval.bias = {.positions = 5, .time_buckets = 4};
  again.residual = false;
  again.recompute.layer = true;
  return {{"concat", concat, true, false},
          {"product", nvidia, true, true},
          {"bias tables", retrieval, false, false},
          {"recomputed", again, true, true}};
}

// Numbers that depend on the sample, the token and what they are for alone.
Tensor numbers(const Samples& samples, std::uint64_t what, std::int64_t last = 100) {
  std::vector<double> values;
  for (const std::int64_t s : samples) {
    const std::int64_t n = kTokens[static_cast<std::size_t>(s)];
    for (std::int64_t t = std::max<std::int64_t>(0, n - last); t < n; ++t) {
      RandomStream random{static_cast<std::uint64_t>(100 * s + t) ^ what << 32};
      for (std::int64_t c = 0; c < kDim; ++c) values.push_back(random.normal());
    }
  }
  return Tensor::from({std::ssize(values) / kDim, kDim}, values);
}

template <typename T>
Tensor list(const std::vector<T>& values) {
  return Tensor::from({std::ssize(values)}, values);
}

// The last `last` tokens of each sample.
StackRows rows_of(const Samples& samples, std::int64_t last) {
  std::vector<std::int64_t> offsets{0}, names, times;
  std::vector<std::int32_t> rows;
  std::int32_t first = 0;
  for (const std::int64_t s : samples) {
    const std::int64_t n = kTokens[static_cast<std::size_t>(s)];
    for (std::int64_t t = std::max<std::int64_t>(0, n - last); t < n; ++t) {
      rows.push_back(first + static_cast<std::int32_t>(t));
      names.push_back(token_name(s, t));
      times.push_back(100 * s * s + t * t * t);
    }
    first += static_cast<std::int32_t>(n);
    offsets.push_back(std::ssize(names));
  }
  return {.rows = list(rows),
          .offsets = list(offsets),
          .names = list(names),
          .query_time = list(times),
          .key_time = {}};
}

// A pass over the samples of this rank.
class Pass {
 public:
  Pass(const Case& c, const Samples& samples, const Context& context)
      : context_(context), samples_(samples), parameters_(7, DType::f64) {
    const HstuStack stack(parameters_, "layers", {2, c.layer, 0.3});
    const Groups* const groups = context.groups;
    if (groups != nullptr && groups->tensor.size() > 1)
      parameters_.divide(groups->tensor.rank(), groups->tensor.size());
    parameters_.move_to(context);
    StackRows all = rows_of(samples, 100);
    all.rows = {};
    all.key_time = all.query_time;
    const StackRows wanted = c.wants_some ? rows_of(samples, 2) : all;
    StackMask mask;
    if (c.has_mask && !samples.empty()) {  // a rank without samples has no list, as in Dlrmv4
      mask.contexts = list(std::vector<std::int32_t>(samples.size(), 1));
      mask.targets = list(std::vector<std::int32_t>(samples.size(), 2));
    }
    const Variable x(numbers(samples, 1));
    Tape tape(context);
    const Variable y = stack(tape, x, all, wanted, 0.1, Draws(3, 4), kFirstLayerPlace, mask);
    note("y", y.value(), c.wants_some ? 2 : 100);
    DenseSums sums(parameters_, groups != nullptr ? groups->world : Group{}, context, {}, 64);
    tape.on_final([&](const Parameter& p) { sums.begin(p); });
    tape.backward(y, numbers(samples, 2, c.wants_some ? 2 : 100));
    sums.finish();
    if (x.has_gradient()) note("dx", x.gradient(), 100);
  }

  const ParameterSet& parameters() const { return parameters_; }
  const Values& of_tokens() const { return of_tokens_; }

 private:
  void note(const std::string& what, const Tensor& rows, std::int64_t last) {
    const double* at = rows.data<double>();
    for (const std::int64_t s : samples_) {
      const std::int64_t n = kTokens[static_cast<std::size_t>(s)];
      for (std::int64_t t = std::max<std::int64_t>(0, n - last); t < n; ++t, at += kDim)
        of_tokens_[fmt::format("{} {} {}", what, s, t)].assign(at, at + kDim);
    }
  }

  Context context_;
  Samples samples_;
  ParameterSet parameters_;
  Values of_tokens_;
};

// Uneven, and the last rank has none.
Samples samples_of(int rank, int ranks) {
  Samples samples;
  const int takers = std::max(1, ranks - 1);
  for (std::int64_t s = 0; s < std::ssize(kTokens); ++s)
    if ((s * s + s) / 2 % takers == rank) samples.push_back(s);
  return samples;
}

struct Sizes {
  int ranks = 1;
  GroupSizes groups = {};
};

template <typename Body>
void run_divided(const Sizes& sizes, Trace* trace, const Body& body) {
  run_ranks(sizes.ranks, [&](Communicator& world) {
    ExchangeQueue queue(world);
    const DividedRanks ranks({world, nullptr, &queue}, sizes.groups);
    Context context;
    context.groups = &ranks.groups();
    context.trace = trace;
    body(world, context);
  });
}

double largest(const std::vector<double>& values) {
  double most = 0;
  for (const double x : values) most = std::max(most, std::abs(x));
  return most;
}

void expect_gradients(const ParameterSet& found, const ParameterSet& whole) {
  for (const Parameter* p : found.all()) {
    const Parameter& expected = whole.find(p->name);
    const double* const values = expected.gradient.data<double>();
    std::vector<double> part(values, values + expected.gradient.size());
    const double most = largest(part);
    ASSERT_GT(most, 0) << p->name;
    if (p->division.is_divided()) {
      part.resize(static_cast<std::size_t>(p->gradient.size()));
      copy_from_whole(p->division, values, part.data());
    }
    ASSERT_EQ(p->gradient.size(), std::ssize(part)) << p->name;
    for (std::size_t i = 0; i < part.size(); ++i)
      ASSERT_NEAR(p->gradient.data<double>()[i], part[i], 1e-12 * most) << p->name << " " << i;
  }
}

// What ranks have both is equal to the bit.
void expect_equal_bits(const ParameterSet& parameters, const Groups& groups) {
  for (const Parameter* p : parameters.all()) {
    Communicator& comm = (p->division.is_divided() ? groups.replicas : groups.world).host;
    const std::span<const double> mine(p->gradient.data<double>(),
                                       static_cast<std::size_t>(p->gradient.size()));
    const std::vector<double> all = comm.all_gather(mine);
    for (std::size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], mine[i % mine.size()]) << p->name;
  }
}

TEST(DividedLayers, HaveTheOutputsAndGradientsOfOneRankInFp64) {
  for (const Case& c : cases()) {
    const Pass alone(c, samples_of(0, 1), host_context());
    for (const Sizes& sizes : {Sizes{2, {2, 1}}, {4, {4, 1}}, {6, {2, 1}}, {12, {4, 1}}, {3, {1, 1}}}) {
      SCOPED_TRACE(fmt::format("{}: {} ranks, tensor {}", c.name, sizes.ranks, sizes.groups.tensor));
      run_divided(sizes, nullptr, [&](Communicator& world, const Context& context) {
        const Pass pass(c, samples_of(world.rank(), world.size()), context);
        for (const auto& [token, values] : pass.of_tokens())
          for (std::size_t i = 0; i < values.size(); ++i)
            ASSERT_NEAR(values[i], alone.of_tokens().at(token)[i], 1e-12 * 10) << token;
        expect_gradients(pass.parameters(), alone.parameters());
        expect_equal_bits(pass.parameters(), *context.groups);
      });
    }
  }
}

// Delays every operation of every rank by a random time.
class Delays : public Trace {
 public:
  void begin(std::string_view) override {
    std::this_thread::sleep_for(std::chrono::microseconds(random_.fetch_add(7919) % 331));
  }
  void end() override {}

 private:
  std::atomic<int> random_ = 0;
};

// Exchanges of the layers, and of the queues of dense gradients beside them: no order of the ranks' progress
// is waited for by another.
TEST(DividedLayers, DoNotWaitForEachOtherInACircle) {
  const Case c = cases().back();
  Delays delays;
  const Pass alone(c, samples_of(0, 1), host_context());
  for (int round = 0; round < 3; ++round) {
    run_divided({4, {2, 1}}, &delays, [&](Communicator& world, const Context& context) {
      const Pass pass(c, samples_of(world.rank(), world.size()), context);
      expect_gradients(pass.parameters(), alone.parameters());
    });
  }
}

}  // namespace
}  // namespace hstu::testing_divided_layers
