// Layers of samples whose long ones the ranks of context groups share, against those of one rank: gradients
// to rounding and, where ranks divide the heads, the same bits of rows.
#include "hstu/model/shared_samples.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "hstu/comm/thread_group.h"
#include "support/op_cases.h"

namespace hstu::testing_shared {
namespace {

using testing::random_tensor;

constexpr std::int64_t kDim = 6, kAbove = 9;
const std::vector<std::int64_t> kTokens{0, 3, 17, 9, 40, 1, 25, 10, 4, 31, 12, 2};

struct Form {
  std::string name;
  HstuLayerConfig layer = {};
  bool wants_some = false, contexts = false, own_factors = false;
  AttentionMask mask = {};
};

std::vector<Form> forms() {
  Form meta{.name = "contexts and targets, few wanted", .wants_some = true, .contexts = true};
  Form times{.name = "times, product gate, layers recomputed", .own_factors = true};
  times.layer.gate = ops::GateForm::product;
  times.layer.bias = {.positions = 8, .time_buckets = 5};
  times.layer.recompute.layer = true;
  Form queries = times;
  queries.name = "times, product gate, few wanted, some recomputed", queries.wants_some = true;
  queries.layer.recompute = {.norm = true, .silu = true, .gate = true};
  Form window{.name = "window, targets in groups", .contexts = true, .mask = {.left = 6, .target_group = 2}};
  Form ahead = times;
  ahead.name = "times, queries see what comes", ahead.mask = {.left = 5, .right = 2};
  Form hidden{
      .name = "hidden keys, few wanted", .wants_some = true, .mask = {.left = 13, .hidden_period = 3}};
  return {meta, times, queries, window, ahead, hidden};
}

// The samples of a rank: of one rank all. The samples of each of `owners` ranks have a factor of their own.
class SomeSamples {
 public:
  SomeSamples(const Form& form, int rank, int ranks, int owners) {
    std::int64_t first = 0, first_wanted = 0;
    std::vector<std::int64_t> offsets{0}, wanted_offsets{0}, names, wanted_names, time, wanted_time;
    std::vector<std::int32_t> contexts, targets, wanted_rows;
    std::vector<double> factors;
    for (std::size_t b = 0; b < kTokens.size(); ++b) {
      const std::int64_t n = kTokens[b], m = form.wants_some ? std::min<std::int64_t>(3, n) : n;
      for (std::int64_t t = 0; t < n && owner(b, ranks) == rank; ++t) {
        if (t >= n - m) {
          wanted_rows.push_back(static_cast<std::int32_t>(names.size()));
          wanted_names.push_back(token_name(static_cast<std::int64_t>(b), t));
          wanted_time.push_back(100 * t + 7);
          wanted_.push_back(static_cast<std::int32_t>(first_wanted + t - n + m));
        }
        rows_.push_back(static_cast<std::int32_t>(first + t));
        names.push_back(token_name(static_cast<std::int64_t>(b), t));
        time.push_back(t * t);
      }
      first += n, first_wanted += m;
      if (owner(b, ranks) != rank) continue;
      offsets.push_back(std::ssize(names)), wanted_offsets.push_back(std::ssize(wanted_names));
      contexts.push_back(static_cast<std::int32_t>(b % 3));
      targets.push_back(static_cast<std::int32_t>(b % 4));
      factors.push_back(0.25 + 0.125 * owner(b, owners));
    }
    const auto list = [](const auto& values) { return Tensor::from({std::ssize(values)}, values); };
    tokens_.all = {.rows = {}, .offsets = list(offsets), .names = list(names)};
    if (form.layer.bias.any()) tokens_.all.query_time = tokens_.all.key_time = list(time);
    tokens_.wanted = tokens_.all;
    if (form.wants_some) {
      tokens_.wanted = {
          .rows = list(wanted_rows), .offsets = list(wanted_offsets), .names = list(wanted_names)};
      if (form.layer.bias.any()) tokens_.wanted.query_time = list(wanted_time);
    }
    // As models do, which leave out a list of zeros.
    const auto any_of = [](const std::vector<std::int32_t>& x) {
      return std::ranges::count(x, 0) < std::ssize(x);
    };
    if (form.contexts && any_of(contexts)) tokens_.mask.contexts = list(contexts);
    if (form.contexts && any_of(targets)) tokens_.mask.targets = list(targets);
    tokens_.mask.mask = form.mask;
    tokens_.scale = form.own_factors && !factors.empty() ? factors.front() : 0.5;
    if (form.own_factors && ranks == 1) tokens_.scale = 1, tokens_.mask.sample_scale = list(factors);
  }

  const StackTokens& tokens() const { return tokens_; }
  // Of rows of all tokens, and of all wanted ones.
  Tensor rows(const Tensor& all) const { return some(all, rows_); }
  Tensor wanted(const Tensor& all) const { return some(all, wanted_); }

 private:
  static int owner(std::size_t b, int ranks) { return static_cast<int>(b * 5 % 12) * ranks / 12; }
  static Tensor some(const Tensor& all, const std::vector<std::int32_t>& rows) {
    Tape tape(false);
    return ops::gather_rows(tape, Variable::constant(all), ops::row_index(rows)).value();
  }

  StackTokens tokens_;
  std::vector<std::int32_t> rows_, wanted_;
};

struct Values {
  Tensor y, dx;
  std::vector<double> parameters;  // their gradients, one after another
};

Values compute(const Form& form, std::int64_t heads, const SomeSamples& samples, const Tensor& x,
               const Tensor& dy, const Groups* groups) {
  ParameterSet parameters(3, DType::f64);
  HstuStackConfig config{.layers = 2, .layer = form.layer, .dropout = 0.2};
  config.layer.dim = kDim, config.layer.heads = heads, config.layer.head_dim = 3;
  const HstuStack stack(parameters, "layers", config);
  Context context;
  context.groups = groups;
  Tape tape(context);
  const Variable rows(samples.rows(x));
  const StackTokens& tokens = samples.tokens();
  const Variable y =
      stack(tape, rows, tokens.all, tokens.wanted, tokens.scale, Draws(5, 0), kFirstLayerPlace, tokens.mask);
  tape.backward(y, samples.wanted(dy));
  Values values{y.value().copy(), rows.gradient(), {}};
  for (const Parameter* p : parameters.all())
    values.parameters.insert(values.parameters.end(), p->gradient.data<double>(),
                             p->gradient.data<double>() + p->gradient.size());
  return values;
}

using Numbers = std::span<const double>;

Numbers numbers(const Tensor& x) {
  return {x.data<double>(), static_cast<std::size_t>(x.size())};
}

// tolerance: of the largest value.
void expect_near(Numbers found, Numbers expected, double tolerance, const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  double largest = 0, difference = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    largest = std::max(largest, std::abs(expected[i]));
    difference = std::max(difference, std::abs(found[i] - expected[i]));
  }
  EXPECT_LE(difference, tolerance * largest) << what;
}

struct Ranks {
  std::int64_t heads;
  GroupSizes groups;
  int data;  // groups of each kind
  bool divides_heads() const { return heads / groups.tensor % groups.context == 0; }
};
constexpr Ranks kRanks[] = {{4, {1, 2}, 2}, {3, {1, 3}, 1}, {4, {2, 2}, 1}, {1, {1, 2}, 1},
                            {1, {1, 4}, 1}, {3, {1, 2}, 2}, {3, {1, 4}, 1}, {2, {2, 2}, 1}};

TEST(SharedSamples, HaveTheResultsOfOneRank) {
  std::int64_t all = 0, wanted = 0;
  for (const std::int64_t n : kTokens) all += n, wanted += std::min<std::int64_t>(3, n);
  const Tensor x = random_tensor({all, kDim}, DType::f64, 1);
  for (const Form& form : forms()) {
    const Tensor dy = random_tensor({form.wants_some ? wanted : all, kDim}, DType::f64, 2);
    for (const Ranks& of : kRanks) {
      if (of.divides_heads() && form.mask.left >= 0) continue;  // there a sample is whole
      const int ranks = of.data * of.groups.tensor * of.groups.context;
      const SomeSamples alone(form, 0, 1, ranks);
      const Values expected = compute(form, of.heads, alone, x, dy, nullptr);
      run_ranks(ranks, [&](Communicator& world) {
        const DividedRanks divided({world}, of.groups);
        Groups groups = divided.groups();
        groups.context_above = kAbove;
        const auto what = fmt::format("{}, {} heads: {} x {} x {}, rank {}", form.name, of.heads, of.data,
                                      of.groups.tensor, of.groups.context, world.rank());
        const SomeSamples mine(form, world.rank(), ranks, ranks);
        Values found = compute(form, of.heads, mine, x, dy, &groups);
        const double of_rows = of.divides_heads() ? 0 : 1e-12;
        expect_near(numbers(found.y), numbers(mine.wanted(expected.y)), of_rows, what);
        expect_near(numbers(found.dx), numbers(mine.rows(expected.dx)), of_rows, what);
        world.all_reduce_sum(std::span(found.parameters));
        expect_near(found.parameters, expected.parameters, 1e-12, what);
      });
    }
  }
}

// Nothing is exchanged but the lists of long samples, of which there are none.
TEST(SharedSamples, AreNoneWhereAllAreShort) {
  const Form form{.name = ""};
  run_ranks(2, [&](Communicator& world) {
    const DividedRanks divided({world}, {1, 2});
    Groups groups = divided.groups();
    Context context;
    context.groups = &groups;
    const SomeSamples mine(form, world.rank(), 2, 2);
    groups.context_above = 40;
    EXPECT_FALSE(SharedSamples::find(context, mine.tokens(), DType::f64, 2));
    groups.context_above = 39;
    EXPECT_TRUE(SharedSamples::find(context, mine.tokens(), DType::f64, 2));
  });
}

}  // namespace
}  // namespace hstu::testing_shared
