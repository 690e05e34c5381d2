#include "hstu/kinds/retrieval/retrieval_layout.h"

#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/kinds/retrieval/retrieval.h"
#include "hstu/model/draws.h"
#include "hstu/objective/retrieval_objective.h"
#include "loss/gradients.h"
#include "support/op_cases.h"

namespace hstu {
namespace {

using ::testing::ElementsAre;
using Id = std::int64_t;
using Index = std::int32_t;

// Users with three, no and one events before the anchor.
Samples users(bool predicts_next_events) {
  Samples samples;
  samples.count = 3;
  samples.predicts_next_events = predicts_next_events;
  samples.history_offsets = {0, 3, 3, 4};
  samples.history_item = {1, 0, 1, 2};
  samples.history_action = {0, 0, 0, 0};
  samples.history_time = {100, 200, 300, 50};
  samples.candidate_item = {2, 1, 0};
  samples.candidate_time = {400, 10, 60};
  samples.label = {1, 1, 1};
  samples.user = {7, 8, 9};
  samples.position = {50, 60, 70};
  // Trap: ids that pass through 32 bits or through a float.
  samples.items = {(Id{1} << 24) + 1, (Id{1} << 40) + 1, (Id{1} << 40) + 3};
  return samples;
}

constexpr Id kA = (Id{1} << 24) + 1, kB = (Id{1} << 40) + 1, kC = (Id{1} << 40) + 3;

SampleFeatures item_alone() {
  return SampleFeatures({"item", Id{1} << 41});
}

TEST(RetrievalLayout, EveryTokenOfTrainingAsksForTheNextEvent) {
  LayoutScratch scratch;
  Batch batch;
  RetrievalLayout(item_alone()).lay_out(users(true), scratch, batch);
  EXPECT_EQ(batch.tokens, 4);
  EXPECT_EQ(batch.longest, 3);
  EXPECT_THAT(batch.values<Id>(retrieval::kOffsets), ElementsAre(0, 3, 3, 4));
  EXPECT_THAT(batch.values<Index>("item.index"), ElementsAre(1, 0, 1, 2));
  EXPECT_THAT(batch.values<Index>(retrieval::kPosition), ElementsAre(0, 1, 2, 0));
  EXPECT_THAT(batch.values<Id>(retrieval::kTokenName),
              ElementsAre(token_name(50, 0), token_name(50, 1), token_name(50, 2), token_name(70, 0)));
  EXPECT_THAT(batch.values<Id>(retrieval::kKeyTime), ElementsAre(100, 200, 300, 50));
  EXPECT_THAT(batch.values<Id>(retrieval::kQueryTime), ElementsAre(200, 300, 400, 60));
  EXPECT_THAT(batch.values<Id>(retrieval::kTarget), ElementsAre(kA, kB, kC, kA));
  EXPECT_THAT(batch.values<Index>(retrieval::kTargetRow), ElementsAre(0, 1, 2, 0));
  EXPECT_THAT(batch.values<Index>(retrieval::kTargetSample), ElementsAre(0, 0, 0, 2));
  for (const Batch::Column& column : batch.columns()) EXPECT_NE(column.name, retrieval::kQuery);
}

TEST(RetrievalLayout, AnEvaluationAsksForTheEventAfterTheLastToken) {
  LayoutScratch scratch;
  Batch batch;
  RetrievalLayout(item_alone()).lay_out(users(false), scratch, batch);
  EXPECT_THAT(batch.values<Index>(retrieval::kQuery), ElementsAre(2, 3));
  EXPECT_THAT(batch.values<Id>(retrieval::kQueryName), ElementsAre(token_name(50, 2), token_name(70, 0)));
  EXPECT_THAT(batch.values<Id>(retrieval::kQueryOffsets), ElementsAre(0, 1, 1, 2));
  EXPECT_THAT(batch.values<Id>(retrieval::kLastQueryTime), ElementsAre(400, 60));
  EXPECT_THAT(batch.values<Id>(retrieval::kTarget), ElementsAre(kC, kA));
  EXPECT_THAT(batch.values<Index>(retrieval::kTargetSample), ElementsAre(0, 2));
}

TEST(RetrievalLayout, DrawnItemsFollowTheTarget) {
  Samples samples = users(true);
  samples.drawn_item = {0, 1, 1, 2, 2, 2, 0, 0};
  LayoutScratch scratch;
  Batch batch;
  samples.catalogue_size = 3;
  RetrievalLayout(item_alone(), {.own = 2}).lay_out(samples, scratch, batch);
  EXPECT_THAT(batch.values<Id>(retrieval::kCatalogueSize), ElementsAre(3));
  EXPECT_THAT(batch.values<Index>(kSampledIndexColumn), ElementsAre(0, 0, 1, 1, 1, 2, 2, 2, 2, 0, 0, 0));
}

TEST(RetrievalLayout, HasTheAttributesOfItemsAndTheActionsOfTokens) {
  Samples samples = users(true);
  samples.history_action = {1, 2, 0, 3};
  samples.attributes = {{7, 9, 7}};
  const SampleFeatures features({"item", Id{1} << 41}, {{"genre", 20}});
  LayoutScratch scratch;
  Batch batch;
  RetrievalLayout(features, {}, false, true).lay_out(samples, scratch, batch);
  EXPECT_THAT(batch.values<Index>(retrieval::kAction), ElementsAre(1, 2, 0, 3));
  EXPECT_THAT(batch.values<Id>("genre.ids"), ElementsAre(7, 9));
  EXPECT_THAT(batch.values<Index>("genre.index"), ElementsAre(0, 1, 0));
  // With those of the catalogue: of items that the batch does not have too.
  const std::vector<CatalogueAttribute> all{CatalogueAttribute({9, 2, 7, 7})};
  samples.catalogue_attributes = &all;
  batch.clear();
  RetrievalLayout(features).lay_out(samples, scratch, batch);
  EXPECT_THAT(batch.values<Id>("genre.ids"), ElementsAre(2, 7, 9));
  EXPECT_THAT(batch.values<Index>("genre.index"), ElementsAre(1, 2, 1));
  EXPECT_THAT(batch.values<Index>("catalogue.genre.index"), ElementsAre(2, 0, 1, 1));
}

TEST(RetrievalLayout, TokensHaveTheContextsOfTheirUser) {
  Samples samples = users(true);
  samples.context = {{9, 4, 9}, {1, 2, 3}};
  LayoutScratch scratch;
  Batch batch;
  RetrievalLayout(SampleFeatures({"item", Id{1} << 41}, {}, {{"country", 20}, {"user", 20}}))
      .lay_out(samples, scratch, batch);
  EXPECT_THAT(batch.values<Id>("country.ids"), ElementsAre(9, 4));
  EXPECT_THAT(batch.values<Index>(retrieval::token_context_column("country")), ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(batch.values<Id>("user.ids"), ElementsAre(1, 2, 3));
  EXPECT_THAT(batch.values<Index>(retrieval::token_context_column("user")), ElementsAre(0, 0, 0, 2));
}

RetrievalConfig small_model(SequencePreset preset) {
  RetrievalConfig config;
  config.preset = preset;
  config.embedding_dim = 8;
  config.heads = 2;
  config.history = 5;
  return config;
}

// In every preset the gradient of a context's rows is that of differences.
TEST(Retrieval, ContextsAreLearnt) {
  for (const auto& [word, preset] : kSequencePresets) {
    const Retrieval model(small_model(preset), SampleFeatures({"item", Id{1} << 41}, {}, {{"country", 20}}),
                          3, DType::f64);
    Samples samples = users(true);
    samples.context = {{9, 4, 7}};
    LayoutScratch scratch;
    Batch batch;
    model.layout().lay_out(samples, scratch, batch);
    const Tensor items = testing::random_tensor({3, 8}, DType::f64, 1),
                 dy = testing::random_tensor({4, 8}, DType::f64, 2);
    Tensor countries = testing::random_tensor({3, 8}, DType::f64, 3);
    const auto outputs = [&](Tape& tape, const Variable& rows) {
      return model.forward(tape, batch, std::vector<Variable>{Variable(items), rows}, Draws());
    };
    Tape tape;
    const Variable leaf(countries.copy());
    tape.backward(outputs(tape, leaf), dy);
    const auto loss = [&] {
      Tape forward(false);
      const Tensor y = outputs(forward, Variable(countries)).value();
      double sum = 0;
      for (Id i = 0; i < dy.size(); ++i) sum += y.data<double>()[i] * dy.data<double>()[i];
      return sum;
    };
    testing::expect_gradient(countries, leaf.gradient(), loss, word);
    double largest = 0;
    for (Id i = 0; i < 8; ++i) largest = std::max(largest, std::abs(leaf.gradient().data<double>()[i]));
    EXPECT_GT(largest, 1e-3) << word;
    EXPECT_EQ(leaf.gradient().data<double>()[8], 0) << "the second user has no token";
  }
}

// Outputs of the positions that an evaluation asks for are those that training has there.
TEST(Retrieval, AnEvaluationComputesTheRowsOfTraining) {
  for (const auto& [word, preset] : kSequencePresets) {
    const Retrieval model(small_model(preset), item_alone(), 3);
    const auto vectors = [&](bool training) {
      LayoutScratch scratch;
      Batch batch;
      model.layout().lay_out(users(training), scratch, batch);
      Tensor rows = Tensor::empty({3, 8}, DType::f32);
      for (Id i = 0; i < rows.size(); ++i)
        rows.mutable_data<float>()[i] = 0.1f * static_cast<float>(i % 7) - 0.25f;
      const std::vector<Variable> leaves{Variable(rows)};
      Tape tape(false);
      const Tensor out = model.forward(tape, batch, leaves, Draws()).value();
      return std::vector<float>(out.data<float>(), out.data<float>() + out.size());
    };
    const std::vector<float> all = vectors(true), last = vectors(false);
    ASSERT_EQ(all.size(), 32u) << word;
    ASSERT_EQ(last.size(), 16u) << word;
    for (std::size_t e = 0; e < 8; ++e) {
      EXPECT_FLOAT_EQ(last[e], all[16 + e]) << word;
      EXPECT_FLOAT_EQ(last[8 + e], all[24 + e]) << word;
    }
  }
}

}  // namespace
}  // namespace hstu
