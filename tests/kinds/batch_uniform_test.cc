// The loss of NVIDIA's RetrievalGR: of a model and its objective, against its formula, and differences.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "batching/small_data.h"
#include "hstu/batching/sample_builder.h"
#include "hstu/kinds/retrieval/retrieval.h"
#include "hstu/objective/retrieval_objective.h"
#include "loss/gradients.h"
#include "support/op_cases.h"

namespace hstu::testing_batch_uniform {
namespace {

using Ids = std::vector<std::int64_t>;
constexpr std::int64_t kItems = 12, kWidth = 8, kNegatives = 5;
constexpr double kTemperature = 0.5;

RetrievalConfig model_config() {
  RetrievalConfig config;
  config.preset = SequencePreset::nvidia;
  config.embedding_dim = kWidth;
  config.heads = 2;
  config.history = 6;
  config.loss = {
      .kind = RetrievalLossKind::batch_uniform, .temperature = kTemperature, .negatives = kNegatives};
  return config;
}

DataOptions data_options() {
  DataOptions options;
  options.history_length = model_config().history;
  options.strategy = HistoryStrategy::last_n;
  options.predicts_next_events = true;
  options.catalogue = model_config().loss.drawn();
  return options;
}

// The users of a small dataset, each with its last events; only those whose number of events `takes`.
struct Users {
  explicit Users(std::int64_t fewest, std::int64_t most)
      : data(small::write(small::random_events(4, {.users = 14, .longest = 9, .items = kItems}))),
        dataset(data.folder),
        model(model_config(), SampleFeatures({"item", kItems}), 3, DType::f64) {
    Ids catalogue(kItems), anchors;
    std::iota(catalogue.begin(), catalogue.end(), 0);
    for (std::int64_t p = 0; p < data.size(); ++p) {
      const std::int64_t events = p + 1 - data.user_start(p);
      if (p + 1 < data.size() && data.user_start(p + 1) != p + 1) continue;
      if (events >= fewest && events <= most) anchors.push_back(p);
    }
    const SampleBuilder builder(dataset, data_options(), nullptr, catalogue);
    LayoutScratch scratch;
    model.layout().lay_out(builder.build(anchors), scratch, batch);
    batch.supervised = std::max<std::int64_t>(1, batch.tokens);
    const auto ids = batch.values<std::int64_t>("item.ids");
    rows = testing::random_tensor({std::ssize(ids), kWidth}, DType::f64, 8);
  }

  struct Outcome {
    double loss;
    Tensor vectors, drows;
  };
  Outcome outcome() const {
    Tape tape;
    const std::vector<Variable> leaves{Variable(rows)};
    const std::vector<CatalogueRows> catalogues(1);  // which this loss does not read
    const Variable vectors = model.forward(tape, batch, leaves, Draws());
    const RetrievalObjective objective({.loss = model_config().loss});
    const Variable loss = objective.loss({tape, batch, leaves, catalogues}, vectors);
    tape.backward(loss);
    return {loss.value().data<double>()[0], vectors.value(), leaves[0].gradient()};
  }

  small::Data data;
  Dataset dataset;
  Retrieval model;
  Batch batch;
  Tensor rows;
};

// -log softmax([<f, e_y>, <f, e_1>, ... <f, e_K>] / temperature) of the first, with unit vectors.
double formula(const Users& users, const Tensor& vectors, int& hits) {
  const auto targets = users.batch.values<std::int64_t>(retrieval::kTarget);
  const auto ids = users.batch.values<std::int64_t>("item.ids");
  const auto drawn = users.batch.values<std::int32_t>(kSampledIndexColumn);
  double sum = 0;
  for (std::size_t t = 0; t < targets.size(); ++t) {
    const double* const f = vectors.data<double>() + static_cast<std::int64_t>(t) * kWidth;
    const auto logit = [&](std::size_t row) {
      const double* const e = users.rows.data<double>() + static_cast<std::int64_t>(row) * kWidth;
      const double norm = std::max(1e-6, std::sqrt(std::inner_product(e, e + kWidth, e, 0.0)));
      return std::inner_product(f, f + kWidth, e, 0.0) / norm / kTemperature;
    };
    const double target =
        logit(static_cast<std::size_t>(std::find(ids.begin(), ids.end(), targets[t]) - ids.begin()));
    double exponentials = std::exp(target);
    for (std::size_t k = 1; k <= kNegatives; ++k) {
      const auto row = static_cast<std::size_t>(drawn[t * (1 + kNegatives) + k]);
      const bool hit = ids[row] == targets[t];
      hits += hit ? 1 : 0;
      exponentials += std::exp(hit ? -5e4 : logit(row));
    }
    sum += std::log(exponentials) - target;
  }
  return sum / static_cast<double>(users.batch.supervised);
}

TEST(BatchUniform, IsTheFormulaAndHasItsGradient) {
  Users users(1, 9);
  const Users::Outcome found = users.outcome();
  int hits = 0;
  ASSERT_GT(users.batch.tokens, 20);
  EXPECT_NEAR(found.loss, formula(users, found.vectors, hits), 1e-12);
  EXPECT_GT(hits, 0) << "the case has no negative that is its target";
  testing::expect_gradient(
      users.rows, found.drows, [&] { return users.outcome().loss; }, "rows");
}

// Traps of the original: a pool of one item, and a batch without a target.
TEST(BatchUniform, OneTargetOrNoneHasNoLoss) {
  const Users none(1, 1);
  ASSERT_EQ(none.batch.tokens, 0);
  EXPECT_EQ(none.outcome().loss, 0);
  const small::Data pair = small::write({{.user = 1, .time = 5, .item = 3, .action = small::kGood},
                                         {.user = 1, .time = 9, .item = 7, .action = small::kGood}},
                                        "pair");
  Users one(1, 1);
  const Dataset dataset(pair.folder);
  LayoutScratch scratch;
  one.batch.clear();
  one.model.layout().lay_out(SampleBuilder(dataset, data_options(), nullptr, {3, 7}).build(Ids{1}), scratch,
                             one.batch);
  one.batch.supervised = 1;
  one.rows = testing::random_tensor({2, kWidth}, DType::f64, 8);
  ASSERT_EQ(one.batch.tokens, 1);
  EXPECT_EQ(one.outcome().loss, 0);
}

}  // namespace
}  // namespace hstu::testing_batch_uniform
