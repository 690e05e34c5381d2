// The gradients of one step for any number of ranks, division of the batch and place of table rows: in fp64,
// where only a mistake can make a difference of 1e-12, and as a step applies them in fp32.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "embedding/support.h"
#include "hstu/comm/thread_group.h"
#include "hstu/experiment/divided_heads.h"
#include "hstu/experiment/experiment.h"
#include "hstu/kinds/dlrmv4/dlrmv4.h"
#include "hstu/step/dense_sums.h"
#include "hstu/step/step.h"
#include "support/kind_options.h"
#include "training/small_dataset.h"

namespace hstu {
namespace {

// By the name of a parameter, or of a table and an id.
using Vectors = std::map<std::string, std::vector<double>>;

template <typename T>
std::vector<double> in_fp64(const T* values, std::int64_t n) {
  return {values, values + n};
}

// The values of a parameter, of which the learner may have a part; the others are `missing`.
template <typename T>
std::vector<double> in_whole(const Parameter& p, const T* values, double missing) {
  std::vector<double> part = in_fp64(values, p.value.size());
  if (!p.division.is_divided()) return part;
  const Shape& shape = p.whole_shape();
  std::vector<double> whole(static_cast<std::size_t>(std::accumulate(shape.begin(), shape.end(),
                                                                     std::int64_t{1}, std::multiplies<>())),
                            missing);
  copy_to_whole(p.division, part.data(), whole.data());
  return whole;
}

void add(const std::vector<double>& terms, std::vector<double>& sums) {
  sums.resize(std::max(sums.size(), terms.size()));
  for (std::size_t i = 0; i < terms.size(); ++i) sums[i] += terms[i];
}

std::string name_of_row(const Learner& learner, std::size_t t, std::int64_t id) {
  return fmt::format("{}[{}]", learner.tables[t].config().name, id);
}

// The sums over all ranks; every rank has all parameters, and some of the rows.
void sum_over_ranks(const Learner& learner, Vectors& dense, Vectors& rows, Communicator& comm) {
  for (auto& [name, values] : dense) comm.all_reduce_sum(std::span(values));
  const Vectors mine = std::exchange(rows, {});
  for (std::size_t t = 0; t < learner.tables.size(); ++t) {
    const auto dim = static_cast<std::size_t>(learner.tables[t].config().dim);
    for (std::int64_t id = 0; id < learner.tables[t].config().rows; ++id) {
      const auto found = mine.find(name_of_row(learner, t, id));
      const std::vector<double> none, &row = found == mine.end() ? none : found->second;
      const std::vector<double> all = comm.all_gather(std::span<const double>(row));
      for (std::size_t at = 0; at < all.size(); at += dim)
        add({all.begin() + static_cast<std::ptrdiff_t>(at),
             all.begin() + static_cast<std::ptrdiff_t>(at + dim)},
            rows[name_of_row(learner, t, id)]);
    }
  }
}

// The batch for a model in fp64, which reads the clock in its type.
Batch for_fp64(const Batch& batch) {
  Batch result;
  result.samples = batch.samples, result.tokens = batch.tokens, result.longest = batch.longest;
  result.supervised = batch.supervised;
  const auto copy = [&]<typename From, typename To>(const Batch::Column& column, From, To) {
    std::ranges::copy(batch.values<From>(column.name), result.add<To>(column.name, column.shape).begin());
  };
  for (const Batch::Column& column : batch.columns()) {
    if (column.name == dlrmv4::kClock)
      copy(column, float{}, double{});
    else if (column.type == DType::f32)
      copy(column, float{}, float{});
    else if (column.type == DType::i32)
      copy(column, std::int32_t{}, std::int32_t{});
    else if (column.type == DType::i64)
      copy(column, std::int64_t{}, std::int64_t{});
    else
      copy(column, std::uint8_t{}, std::uint8_t{});
  }
  return result;
}

class GradientsOverRanks : public ::testing::Test {
 protected:
  GradientsOverRanks() {
    testing::write_small_dataset(folder_ / "data");
    options_ = testing::small_run(folder_ / "data");
    dlrmv4_of(options_).input_dropout = dlrmv4_of(options_).layer_dropout = 0.3;
    options_.training.batch_size = 28;
    options_.dense.config.kind = DenseOptimizerKind::sgd;
    options_.sparse.kind = RowOptimizerKind::sgd;
    options_.dense.learning_rate = options_.sparse.learning_rate = 1;
    options_.dense.max_gradient_norm = 0;
    one_batch_ = options_;
  }

  // Of the first batch, by the model in fp64 with the learner's parameters and rows, summed over ranks.
  Vectors gradients(Experiment& experiment, Communicator& comm) const {
    Learner& learner = experiment.learner();
    Dlrmv4Config config = dlrmv4_of(options_);
    config.action_bits = {1, 2};
    config.context = 1;
    const std::vector<FeatureSpec> features = learner.model->features();
    Dlrmv4 model(config, SampleFeatures(features[0], {}, {features[1]}), options_.seed, DType::f64);
    divide_heads(learner.options, model, comm.rank(), comm.size());
    for (Parameter* p : model.parameters().all()) {
      const Tensor& from = learner.model->parameters().find(p->name).value;
      std::copy_n(from.data<float>(), from.size(), p->value.mutable_data<double>());
    }
    Vectors dense, rows;
    const auto loader = training_loader(experiment, {}, comm);
    for (bool last = false; !last;) {
      const LoadedBatch& part = *loader->next();
      last = part.last_part;
      std::vector<Variable> leaves;
      const BatchRows looked_up = look_up(learner, part.batch, RowAccess::train);
      for (const Variable& leaf : looked_up.leaves) {
        Tensor values = Tensor::empty(leaf.value().shape(), DType::f64);
        std::copy_n(leaf.value().data<float>(), values.size(), values.mutable_data<double>());
        leaves.emplace_back(std::move(values));
      }
      const Batch batch = for_fp64(part.batch);
      Tape tape(learner.compute);
      tape.backward(learner.objective->loss({tape, batch, leaves},
                                            model.forward(tape, batch, leaves, Draws(options_.seed, 0))));
      for (std::size_t t = 0; t < leaves.size(); ++t) {
        if (!leaves[t].has_gradient()) continue;
        const Tensor& ids = looked_up.selection.tables[t].ids;
        const std::int64_t dim = model.embedding_dim();
        for (std::int64_t i = 0; i < ids.size(); ++i)
          add(in_fp64(leaves[t].gradient().data<double>() + i * dim, dim),
              rows[name_of_row(learner, t, ids.data<std::int64_t>()[i])]);
      }
    }
    for (const Parameter* p : model.parameters().all())
      dense[p->name] = in_whole(*p, p->gradient.data<double>(), 0);
    sum_over_ranks(learner, dense, rows, comm);
    dense.merge(rows);
    return dense;
  }

  // Returns the FLOPs of the layers, of all ranks.
  static std::int64_t step(Experiment& experiment, Communicator& comm) {
    Learner& learner = experiment.learner();
    const auto loader = training_loader(experiment, {}, comm);
    bool last = false;
    const StepContext context{
        .draws = Draws(experiment.options().seed, 0), .compute = learner.compute, .comm = comm};
    PartsOf parts([&]() -> const Batch* {
      if (last) return nullptr;
      LoadedBatch* const part = loader->next();
      last = part->last_part;
      return &part->batch;
    });
    return begin_step(learner, parts, context).finish().flops.model.step();
  }

  // A step by `options_` on so many ranks has the gradients of a step by `one_batch_` on one.
  void expect_those_of_one_rank(int ranks) const;

  Path folder_ = temporary_folder();
  RunOptions options_, one_batch_;
};

// Every parameter, and the rows that this rank has; NaN for columns that it does not have.
Vectors knowledge(const Learner& learner) {
  Vectors all;
  for (const Parameter* p : learner.model->parameters().all())
    all[p->name] = in_whole(*p, p->value.data<float>(), std::numeric_limits<double>::quiet_NaN());
  for (std::size_t t = 0; t < learner.tables.size(); ++t) {
    const EmbeddingTable& table = learner.tables[t];
    const std::int64_t first = table.owners().first_column(table.owners().rank, table.config().dim);
    for (const auto& row : testing_embedding::rows_by_id(table)) {
      std::vector<double>& values = all[name_of_row(learner, t, row.id)];
      values.assign(row.values.size(), std::numeric_limits<double>::quiet_NaN());
      std::copy_n(row.values.begin(), table.width(), values.begin() + first);
    }
  }
  return all;
}

double largest(const std::vector<double>& values) {
  double most = 0;
  for (const double x : values) most = std::max(most, std::abs(x));
  return most;
}

// Relative to the largest value of the parameter or row.
void expect_equal(const Vectors& found, const Vectors& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (const auto& [name, values] : expected) {
    ASSERT_EQ(found.at(name).size(), values.size()) << name;
    for (std::size_t i = 0; i < values.size(); ++i)
      ASSERT_NEAR(found.at(name)[i], values[i], 1e-12 * largest(values)) << name << " " << i;
  }
}

// With SGD at rate 1: after = before - gradient.
void expect_updated(const Vectors& before, const Vectors& after, const Vectors& gradients) {
  for (const auto& [name, values] : after) {
    const std::vector<double>&gradient = gradients.at(name), &old = before.at(name);
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      if (std::isnan(values[i])) continue;
      ASSERT_NEAR(values[i], old[i] - gradient[i], 2e-7 * std::abs(old[i]) + 2e-5 * largest(gradient))
          << name;
    }
  }
}

void GradientsOverRanks::expect_those_of_one_rank(int ranks) const {
  Experiment alone(one_batch_);
  const Vectors expected = gradients(alone, one_rank());
  const Vectors before = knowledge(alone.learner());  // a row's first value depends on its id alone
  for (const std::string row : {"item[3]", "user[5]"}) ASSERT_GT(largest(expected.at(row)), 1e-6) << row;
  const std::int64_t flops = step(alone, one_rank());
  std::mutex mutex;
  Vectors rows;  // of all ranks
  run_ranks(ranks, [&](Communicator& comm) {
    Experiment mine(options_, comm);
    const Vectors found = gradients(mine, comm);
    if (options_.ranks.context >
        1) {  // the list of long samples, 4 exchanges and 4 or 8 of each of two layers
      EXPECT_GE(mine.learner().groups.context.host.activity().collectives, 1 + 4 + 2 * 4);
    }
    EXPECT_EQ(step(mine, comm), flops);  // every sample is counted once
    const Vectors after = knowledge(mine.learner());
    const std::scoped_lock lock(mutex);
    expect_equal(found, expected);
    expect_updated(before, after, expected);
    rows.insert(after.begin(), after.end());
  });
  EXPECT_EQ(rows.size(), expected.size());
}

// Of the tables of items and users.
constexpr std::pair<const char*, const char*> kForms[] = {{"split", "split"},  {"column", "column"},
                                                          {"table", "table"},  {"copy", "copy"},
                                                          {"column", "table"}, {"split", "copy"}};

TEST_F(GradientsOverRanks, AreThoseOfOneRank) {
  for (const int ranks : {1, 2, 3, 4, 7}) {
    for (const Balance balance : {Balance::work, Balance::nvidia, Balance::none}) {
      for (const auto& [item, user] : kForms) {
        if (balance != Balance::work && std::string_view(item) == user) continue;
        SCOPED_TRACE(
            fmt::format("{} ranks, {}, item {}, user {}", ranks, word_of(kBalances, balance), item, user));
        options_.training.balance = balance;
        options_.tables.by_name["item"].ranks = item;
        options_.tables.by_name["user"].ranks = user;
        expect_those_of_one_rank(ranks);
      }
    }
  }
}

TEST_F(GradientsOverRanks, OfSamplesWithWeightsAreThoseOfOneRank) {
  std::filesystem::remove_all(folder_ / "data");
  testing::write_small_dataset(folder_ / "data", 40, 30, true);
  for (const int ranks : {1, 2, 3, 4}) expect_those_of_one_rank(ranks);
}

TEST_F(GradientsOverRanks, AreThoseOfAccumulatedBatches) {
  options_.training.batch_size = 8;
  options_.training.accumulate = 4;
  ASSERT_EQ(options_.training.samples_of_step(), 32);
  one_batch_.training.batch_size = 32;
  for (const int ranks : {1, 3}) expect_those_of_one_rank(ranks);
}

// A gradient of a table's row, or of a parameter that all ranks have, is counted once, whatever shares heads.
TEST_F(GradientsOverRanks, OfRanksThatShareHeadsAreThoseOfOneRank) {
  dlrmv4_of(options_).heads = dlrmv4_of(one_batch_).heads = 4;
  for (const int tensor : {2, 4}) {
    for (const int data : {1, 2, 3}) {
      SCOPED_TRACE(fmt::format("tensor {}, data {}", tensor, data));
      options_.ranks.tensor = tensor;
      options_.tables.by_name["item"].ranks = data == 2 ? "copy" : "split";
      options_.training.micro_batch_tokens = data == 3 ? 40 : 0;
      expect_those_of_one_rank(tensor * data);
    }
  }
}

// Of one sample some ranks may have many tokens and others none.
TEST_F(GradientsOverRanks, OfLongSamplesThatRanksShareAreThoseOfOneRank) {
  options_.ranks.context_above = 7;
  dlrmv4_of(options_).heads = dlrmv4_of(one_batch_).heads = 4;
  options_.training.micro_batch_tokens = 60;
  for (const auto& [ranks, context] : {std::pair{2, 2}, {4, 2}, {6, 2}, {4, 4}}) {
    SCOPED_TRACE(fmt::format("{} ranks in groups of {}", ranks, context));
    options_.ranks.context = context;
    expect_those_of_one_rank(ranks);
  }
}

TEST_F(GradientsOverRanks, OfHeadsAndLongSamplesThatRanksShareAreThoseOfOneRank) {
  options_.ranks.context_above = 7;
  dlrmv4_of(options_).heads = dlrmv4_of(one_batch_).heads = 8;
  options_.training.micro_batch_tokens = 60;
  for (const auto& [tensor, context, data] :
       {std::array{2, 2, 1}, std::array{2, 2, 3}, std::array{4, 2, 1}, std::array{2, 4, 1}}) {
    SCOPED_TRACE(fmt::format("tensor {}, context {}, data {}", tensor, context, data));
    options_.ranks.tensor = tensor, options_.ranks.context = context;
    expect_those_of_one_rank(tensor * context * data);
  }
}

// Keys and values are gathered where the ranks cannot divide the heads.
TEST_F(GradientsOverRanks, OfLongSamplesWithFewHeadsAreThoseOfOneRank) {
  options_.ranks.context_above = 7;
  options_.training.micro_batch_tokens = 60;
  for (const auto& [heads, tensor, context] : {std::array{1, 1, 2}, std::array{1, 1, 4}, std::array{3, 1, 2},
                                               std::array{3, 1, 4}, std::array{6, 2, 2}}) {
    SCOPED_TRACE(fmt::format("{} heads, tensor {}, context {}", heads, tensor, context));
    dlrmv4_of(options_).heads = dlrmv4_of(one_batch_).heads = heads;
    options_.ranks.tensor = tensor, options_.ranks.context = context;
    expect_those_of_one_rank(tensor * context);
  }
}

// In buckets beside the backward pass and in one exchange after it: the same bits.
TEST_F(GradientsOverRanks, OfBucketsAreThoseOfOneExchangeAtTheEnd) {
  for (const int ranks : {1, 2, 3, 4, 7}) {
    run_ranks(ranks, [&](Communicator& comm) {
      Experiment experiment(options_, comm);
      Learner& learner = experiment.learner();
      const auto loader = training_loader(experiment, {}, comm);
      const Batch& batch = loader->next()->batch;
      const BatchRows rows = look_up(learner, batch, RowAccess::train);
      const ParameterSet& parameters = learner.model->parameters();
      // With no bucket size: one exchange.
      const auto gradients = [&](std::optional<std::int64_t> bucket_bytes) {
        parameters.clear_gradients();
        std::optional<DenseSums> sums;
        if (bucket_bytes)
          sums.emplace(parameters, Group{comm, nullptr, &learner.exchanges}, Context(), Context(),
                       *bucket_bytes);
        Tape tape;
        const Variable logits = learner.model->forward(tape, batch, rows.leaves, Draws(options_.seed, 0));
        const Variable loss = learner.objective->loss({tape, batch, rows.leaves}, logits);
        if (sums) tape.on_final([&](const Parameter& parameter) { sums->begin(parameter); });
        tape.backward(loss);
        Tensor all = parameters.gradients();
        if (sums)
          sums->finish();
        else
          comm.all_reduce_sum(std::span(all.mutable_data<float>(), static_cast<std::size_t>(all.size())));
        return std::vector<float>(all.data<float>(), all.data<float>() + all.size());
      };
      const std::vector<float> expected = gradients(std::nullopt);
      for (const std::int64_t bytes : {1, 1000, 1 << 20}) EXPECT_EQ(gradients(bytes), expected) << ranks;
    });
  }
}

}  // namespace
}  // namespace hstu
