// A model with a layer whose parameters are divided among the ranks of a tensor group: gradients, training
// and checkpoints are those of one rank.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "hstu/base/random.h"
#include "hstu/checkpoint/checkpoint.h"
#include "hstu/comm/groups.h"
#include "hstu/comm/thread_group.h"
#include "hstu/ops/elementwise.h"
#include "hstu/ops/exchange.h"
#include "hstu/ops/linear.h"
#include "hstu/optimizer/clipping.h"
#include "hstu/optimizer/optimizer_section.h"
#include "hstu/run/warm_start.h"
#include "hstu/step/dense_shards.h"
#include "hstu/step/dense_sums.h"
#include "temporary_folder.h"

namespace hstu::testing_division {
namespace {

using Values = std::map<std::string, std::vector<double>>;  // by the name of a parameter

constexpr std::int64_t kWidth = 6, kHeads = 4, kPerHead = 2, kTokens = 23;

// Heads of two kinds (u, v), one after another, as those of W_uvqk are.
AxisDivision heads_of(const Group& tensor, std::size_t axis) {
  if (tensor.size() == 1) return {};
  const std::int64_t half = kHeads * kPerHead, mine = half / tensor.size(), first = tensor.rank() * mine;
  return {.axis = axis, .ranges = {{first, first + mine}, {half + first, half + first + mine}}};
}

class SmallModel {
 public:
  SmallModel(DType type, const Context& context)
      : context_(context),
        tensor_(context.groups != nullptr ? context.groups->tensor : Group{}),
        parameters_(7, type),
        in_(add("in.weight", {kWidth, kWidth})),
        in_bias_(add("in.bias", {kWidth})),
        columns_(add("columns.weight", {kWidth, kInner}, heads_of(tensor_, 1))),
        columns_bias_(add("columns.bias", {kInner}, heads_of(tensor_, 0))),
        rows_(add("rows.weight", {kInner, kWidth}, heads_of(tensor_, 0))),
        out_(add("out.weight", {kWidth, 1})) {
    parameters_.move_to(context);
  }

  const ParameterSet& parameters() const { return parameters_; }

  // Adds gradients of the sum over rows of x (T_r, kWidth) of weights (T_r) times the output.
  void backward(const Tensor& x, const Tensor& weights, DenseSums* sums) const {
    Tape tape(context_);
    const std::vector<std::int64_t> rows = ops::rows_of_ranks(x.rows(), tensor_);
    const Variable h = ops::linear(tape, Variable::constant(x), Variable(in_), Variable(in_bias_));
    const Variable all = ops::all_gather_rows(tape, h, rows, tensor_);
    const Variable uv = ops::linear(tape, all, Variable(columns_), Variable(columns_bias_));
    const Variable projected = ops::linear(tape, ops::multiply(tape, uv, uv), Variable(rows_), Variable());
    const Variable y = ops::add(tape, ops::reduce_scatter_rows(tape, projected, rows, tensor_), h);
    if (sums != nullptr) tape.on_final([&](const Parameter& p) { sums->begin(p); });
    tape.backward(ops::linear(tape, ops::multiply(tape, y, y), Variable(out_), Variable()), weights);
    if (sums != nullptr) sums->finish();
  }

 private:
  static constexpr std::int64_t kInner = 2 * kHeads * kPerHead;

  const Parameter& add(const std::string& name, const Shape& shape, const AxisDivision& division = {}) {
    return parameters_.add(name, shape, Initializer::normal(0.4), division);
  }

  const Context& context_;
  Group tensor_;
  ParameterSet parameters_;
  const Parameter &in_, &in_bias_, &columns_, &columns_bias_, &rows_, &out_;
};

// The tokens of a rank in a step and what they weigh. Uneven; of two ranks and more, the last has none in the
// first step.
struct Tokens {
  Tensor x, weights;
};
std::vector<std::int64_t> tokens_of_ranks(int ranks, std::int64_t step) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(ranks), 0);
  const int takers = ranks > 1 && step == 0 ? ranks - 1 : ranks;
  for (std::int64_t t = 0; t < kTokens; ++t) ++counts[static_cast<std::size_t>(t * t % takers)];
  return counts;
}
Tokens tokens_of(int rank, int ranks, std::int64_t step, DType type, bool backwards = false) {
  const std::vector<std::int64_t> counts = tokens_of_ranks(ranks, step);
  const std::int64_t n = counts[static_cast<std::size_t>(rank)];
  const std::int64_t first = std::accumulate(counts.begin(), counts.begin() + rank, std::int64_t{0});
  Tokens tokens{Tensor::empty({n, kWidth}, type), Tensor::empty({n, 1}, type)};
  with_float_type(type, [&]<typename T>() {
    for (std::int64_t t = 0; t < n; ++t) {
      RandomStream random{static_cast<std::uint64_t>(1000 * step + first + t)};
      const std::int64_t row = backwards ? n - 1 - t : t;
      for (std::int64_t c = 0; c < kWidth; ++c)
        tokens.x.mutable_data<T>()[row * kWidth + c] = static_cast<T>(random.normal());
      tokens.weights.mutable_data<T>()[row] = static_cast<T>(random.normal() / kTokens);
    }
  });
  return tokens;
}

struct Sizes {
  int ranks = 1;
  GroupSizes groups = {};
};
constexpr Sizes kSizes[] = {{2, {2, 1}}, {4, {2, 1}}, {4, {4, 1}}, {8, {2, 2}}, {3, {1, 1}}};

// Of each rank, on processors; with the groups in the context.
template <typename Body>
void run_divided(const Sizes& sizes, const Body& body) {
  run_ranks(sizes.ranks, [&](Communicator& world) {
    ExchangeQueue queue(world);
    const DividedRanks ranks({world, nullptr, &queue}, sizes.groups);
    Context context;
    context.groups = &ranks.groups();
    body(world, context);
  });
}

// What this rank has of whole values.
std::vector<double> part_of(const std::vector<double>& whole, const Parameter& parameter) {
  if (!parameter.division.is_divided()) return whole;
  std::vector<double> part(static_cast<std::size_t>(parameter.value.size()));
  copy_from_whole(parameter.division, whole.data(), part.data());
  return part;
}

Values gradients_of(const ParameterSet& parameters) {
  Values values;
  for (const Parameter* p : parameters.all())
    with_float_type(p->gradient.dtype(), [&]<typename T>() {
      values[p->name].assign(p->gradient.data<T>(), p->gradient.data<T>() + p->gradient.size());
    });
  return values;
}

double largest(const std::vector<double>& values) {
  double most = 0;
  for (const double x : values) most = std::max(most, std::abs(x));
  return most;
}

TEST(DividedParameters, GradientsAreThoseOfOneRankInFp64) {
  const SmallModel alone(DType::f64, host_context());
  const Tokens all = tokens_of(0, 1, 0, DType::f64);
  alone.backward(all.x, all.weights, nullptr);
  const Values expected = gradients_of(alone.parameters());
  const double norm = GradientSquares(alone.parameters().all()).norm();
  for (const Sizes& sizes : kSizes) {
    for (const std::int64_t bucket_bytes : {1, 1 << 20}) {
      run_divided(sizes, [&](Communicator& world, const Context& context) {
        const SmallModel model(DType::f64, context);
        DenseSums sums(model.parameters(), context.groups->world, context, {}, bucket_bytes);
        const Tokens mine = tokens_of(world.rank(), world.size(), 0, DType::f64);
        model.backward(mine.x, mine.weights, &sums);
        const Values found = gradients_of(model.parameters());
        for (const Parameter* p : model.parameters().all()) {
          const std::vector<double> part = part_of(expected.at(p->name), *p);
          ASSERT_EQ(found.at(p->name).size(), part.size());
          for (std::size_t i = 0; i < part.size(); ++i)
            ASSERT_NEAR(found.at(p->name)[i], part[i], 1e-12 * largest(expected.at(p->name))) << p->name;
        }
        EXPECT_NEAR(GradientSquares(model.parameters().all(), context).norm(), norm, 1e-12 * norm);
      });
    }
  }
}

TEST(DividedParameters, AGradientThatIsNotFiniteIsNamedOnEveryRank) {
  run_divided({4, {2, 1}}, [](Communicator& world, const Context& context) {
    const SmallModel model(DType::f32, context);
    if (world.rank() == 3)  // of one tensor group alone, though sums over replicas would spread it
      model.parameters().find("rows.weight").gradient.row_range(0, 1).mutable_data<float>()[0] = NAN;
    const GradientSquares squares(model.parameters().all(), context);
    const double norm = squares.norm();
    EXPECT_EQ(std::isnan(norm), world.rank() >= 2);
    EXPECT_EQ(squares.first_bad(), world.rank() >= 2 ? "rows.weight" : "");
  });
}

TEST(DividedParameters, WithoutGroupsAreRefused) {
  run_divided({2, {2, 1}}, [](Communicator& world, const Context& context) {
    const SmallModel model(DType::f32, context);
    EXPECT_THROW(DenseSums(model.parameters(), {world}, {}, {}), InternalError);
    EXPECT_THROW(GradientSquares(model.parameters().all()).norm(), InternalError);
  });
}

struct Training {
  DenseOptimizerConfig optimizer;
  double max_norm;
  bool shard = false;
};
const Training kAdam{{.kind = DenseOptimizerKind::adam, .weight_decay = 0.01}, 0.5},
    kMomentum{{.kind = DenseOptimizerKind::sgd, .momentum = 0.9}, 0.5},
    kSgd{{.kind = DenseOptimizerKind::sgd}, 0};

// A model in training, of one rank or of one of several.
class Trained {
 public:
  Trained(const Training& training, Communicator& world, const Context& context)
      : world_(world),
        context_(context),
        training_(training),
        model_(DType::f32, context),
        optimizer_(model_.parameters().all(), training.optimizer, context, shard()) {}

  void step(std::int64_t number, bool backwards = false) {
    model_.parameters().clear_gradients();
    const Tokens mine = tokens_of(world_.rank(), world_.size(), number, DType::f32, backwards);
    const Group world = context_.groups != nullptr ? context_.groups->world : Group{};
    DenseSums sums(model_.parameters(), world, context_, {}, 64);
    model_.backward(mine.x, mine.weights, &sums);
    const GradientSquares squares(model_.parameters().all(), context_);
    optimizer_.step(0.05, clip_scale(squares.norm(), training_.max_norm));
    gather_values(optimizer_, world_, nullptr);
  }

  // The sections of rank 0; of the others they may only be loaded.
  std::vector<Section> sections() {
    DenseState state = gather_state(optimizer_, world_);
    return {parameters_section(model_.parameters().all(), {}, std::move(state.parameters)),
            optimizer_section(optimizer_, std::move(state.optimizer))};
  }
  // Collective.
  void save(const Path& folder) {
    const std::vector<Section> all = sections();
    if (world_.rank() == 0) save_checkpoint(folder, 3, all, {});
    world_.barrier();
  }
  void load(const Path& folder) {
    const Checkpoint checkpoint(find_newest(folder));
    checkpoint.load(sections());
  }

  WarmStartReport begin_with(const Path& folder) {
    const Checkpoint checkpoint(find_newest(folder));
    TableSet tables({}, {}, 1);
    return warm_start({.checkpoint = folder, .name_map = {}}, checkpoint, optimizer_, tables);
  }

  // All values and states that this rank has.
  std::vector<std::vector<float>> content() const {
    std::vector<std::vector<float>> all;
    for (const Parameter* p : model_.parameters().all())
      all.emplace_back(p->value.data<float>(), p->value.data<float>() + p->value.size());
    for (const auto& state : optimizer_.state())
      all.emplace_back(state.tensor.data<float>(), state.tensor.data<float>() + state.tensor.size());
    return all;
  }
  const ParameterSet& parameters() const { return model_.parameters(); }

 private:
  static Path find_newest(const Path& folder) {
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      if (entry.is_directory()) return entry.path();
    throw Error("no checkpoint");
  }
  Shard shard() const {
    if (!training_.shard || context_.groups == nullptr) return {};
    return {context_.groups->replicas.rank(), context_.groups->replicas.size()};
  }

  Communicator& world_;
  Context context_;
  Training training_;
  SmallModel model_;
  DenseOptimizer optimizer_;
};

Values values_of(const ParameterSet& parameters) {
  Values values;
  for (const Parameter* p : parameters.all())
    values[p->name].assign(p->value.data<float>(), p->value.data<float>() + p->value.size());
  return values;
}

Values train_on_one_rank(const Training& training, bool backwards) {
  Trained alone(training, one_rank(), host_context());
  for (std::int64_t s = 0; s < 3; ++s) alone.step(s, backwards);
  return values_of(alone.parameters());
}

// What the order of the tokens changes on one rank is what sums in fp32 may change.
TEST(DividedParameters, ThreeStepsAreThoseOfOneRank) {
  for (Training training : {kAdam, kMomentum, kSgd}) {
    const Values expected = train_on_one_rank(training, false), other = train_on_one_rank(training, true);
    for (const bool shard : {false, true}) {
      training.shard = shard;
      for (const Sizes& sizes : kSizes) {
        run_divided(sizes, [&](Communicator& world, const Context& context) {
          Trained trained(training, world, context);
          for (std::int64_t s = 0; s < 3; ++s) trained.step(s);
          const Values found = values_of(trained.parameters());
          for (const Parameter* p : trained.parameters().all()) {
            const std::vector<double>&whole = expected.at(p->name), &reordered = other.at(p->name);
            double noise = 0;
            for (std::size_t i = 0; i < whole.size(); ++i)
              noise = std::max(noise, std::abs(whole[i] - reordered[i]));
            const std::vector<double> part = part_of(whole, *p);
            for (std::size_t i = 0; i < part.size(); ++i)
              ASSERT_NEAR(found.at(p->name)[i], part[i], 4 * noise + 3e-7 * largest(whole))
                  << p->name << ", " << sizes.ranks << " ranks";
          }
        });
      }
    }
  }
}

TEST(DividedParameters, AWarmStartTakesTheirPartsAndStates) {
  for (Training training : {kAdam, kMomentum}) {
    for (const bool shard : {false, true}) {
      training.shard = shard;
      const Path folder = temporary_folder() / "whole";
      std::filesystem::remove_all(folder);
      Trained alone(training, one_rank(), host_context());
      for (std::int64_t s = 0; s < 2; ++s) alone.step(s);
      alone.save(folder);
      for (const Sizes& sizes : kSizes) {
        run_divided(sizes, [&](Communicator& world, const Context& context) {
          Trained loaded(training, world, context), begun(training, world, context);
          loaded.load(folder);
          const WarmStartReport report = begun.begin_with(folder);
          EXPECT_EQ(report.matched.size(), loaded.parameters().all().size());
          EXPECT_EQ(report.new_states, "");
          EXPECT_EQ(begun.content(), loaded.content());
        });
      }
    }
  }
}

TEST(DividedParameters, AreSavedAtOneDivisionAndLoadedAtAnother) {
  for (Training training : {kAdam, kMomentum, kSgd}) {
    for (const bool shard : {false, true}) {
      training.shard = shard;
      for (const Sizes& sizes : kSizes) {
        const Path divided = temporary_folder() / "divided", whole = temporary_folder() / "whole";
        std::filesystem::remove_all(divided);
        std::filesystem::remove_all(whole);
        std::mutex mutex;
        std::map<int, std::vector<std::vector<float>>> saved, continued;  // by rank
        run_divided(sizes, [&](Communicator& world, const Context& context) {
          Trained trained(training, world, context);
          for (std::int64_t s = 0; s < 2; ++s) trained.step(s);
          trained.save(divided);
          const std::scoped_lock lock(mutex);
          saved[world.rank()] = trained.content();
        });
        Trained alone(training, one_rank(), host_context());
        alone.load(divided);
        alone.save(whole);
        run_divided(sizes, [&](Communicator& world, const Context& context) {
          Trained loaded(training, world, context);
          loaded.load(whole);
          EXPECT_EQ(loaded.content(), saved.at(world.rank()));
          loaded.step(2);
          const std::scoped_lock lock(mutex);
          continued[world.rank()] = loaded.content();
        });
        run_divided(sizes, [&](Communicator& world, const Context& context) {
          Trained undisturbed(training, world, context);
          for (std::int64_t s = 0; s < 3; ++s) undisturbed.step(s);
          EXPECT_EQ(undisturbed.content(), continued.at(world.rank()));
        });
      }
    }
  }
}

}  // namespace
}  // namespace hstu::testing_division
