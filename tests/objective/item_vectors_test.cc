// Losses of items with attributes: against the same rows added up before, and finite differences.
#include "hstu/objective/item_vectors.h"

#include <vector>

#include <gtest/gtest.h>

#include "hstu/batching/attribute_of_items.h"
#include "hstu/batching/batch_layout.h"
#include "hstu/objective/retrieval_columns.h"
#include "hstu/objective/retrieval_objective.h"
#include "loss/gradients.h"
#include "loss/plain_catalogue.h"

namespace hstu::testing_item_vectors {
namespace {

using testing::PlainCatalogue;
using Ids = std::vector<std::int64_t>;

// Four items of two genres and three makers, all in the batch; three positions.
struct Case {
  Ids items = {3, 7, 8, 20};
  CatalogueAttribute genre{{5, 0, 5, 0}}, maker{{1, 4, 9, 4}};
  Tensor vectors = testing::random_tensor({3, 5}, DType::f64, 1),
         rows = testing::random_tensor({4, 5}, DType::f64, 2),
         genres = testing::random_tensor({2, 5}, DType::f64, 3),
         makers = testing::random_tensor({3, 5}, DType::f64, 4);
  RetrievalObjective objective;

  explicit Case(RetrievalLossKind kind)
      : objective({.loss = {.kind = kind, .temperature = 0.7, .negatives = 2},
                   .attributes = {{"genre", "genre"}, {"maker", "maker"}}}) {}

  Batch batch() const {
    Batch batch;
    batch.supervised = 3;
    const auto add = [&](const std::string& name, const auto& values) {
      using T = std::decay_t<decltype(values[0])>;
      const auto column = batch.add<T>(name, {std::ssize(values)});
      std::copy(values.begin(), values.end(), column.begin());
    };
    for (const auto& [name, of] :
         {std::pair<std::string, const CatalogueAttribute&>("genre", genre), {"maker", maker}}) {
      add(index_column(name), of.number);
      add(catalogue_index_column(name), of.number);
    }
    add(std::string(retrieval::kTarget), Ids{7, 20, 3});
    add(std::string(retrieval::kCatalogueSize), Ids{4});
    const auto drawn = batch.add<std::int32_t>(kSampledIndexColumn, {3, 3});
    const std::int32_t index[] = {1, 0, 3, 3, 2, 2, 0, 1, 3};
    std::copy(std::begin(index), std::end(index), drawn.begin());
    return batch;
  }
};

struct Outcome {
  double loss = 0;
  Tensor dvectors, drows, dgenres, dmakers;
};
Outcome outcome_of(const Case& c) {
  const Batch batch = c.batch();
  const PlainCatalogue catalogue(c.items, c.rows);
  Tape tape;
  const std::vector<Variable> rows{Variable(c.rows), Variable(c.genres), Variable(c.makers)};
  const std::vector<CatalogueRows> catalogues{catalogue.rows()};
  const Variable vectors(c.vectors);
  const Variable loss = c.objective.loss({tape, batch, rows, catalogues}, vectors);
  tape.backward(loss);
  const bool full = !rows[0].has_gradient();
  return {loss.value().data<double>()[0], vectors.gradient(),
          full ? catalogue.gradient() : rows[0].gradient(), rows[1].gradient(), rows[2].gradient()};
}

TEST(ItemVectors, LossesHaveTheGradientsOfItemsAndAttributes) {
  for (const RetrievalLossKind kind : {RetrievalLossKind::full, RetrievalLossKind::uniform}) {
    Case c(kind);
    const Outcome found = outcome_of(c);
    const auto loss = [&] { return outcome_of(c).loss; };
    testing::expect_gradient(c.vectors, found.dvectors, loss, "vectors");
    testing::expect_gradient(c.rows, found.drows, loss, "items");
    testing::expect_gradient(c.genres, found.dgenres, loss, "genres");
    testing::expect_gradient(c.makers, found.dmakers, loss, "makers");
  }
}

// What is compared is the sum of an item's rows, in the loss and in an evaluation.
TEST(ItemVectors, AreTheSumsOfTheRows) {
  const Case c(RetrievalLossKind::full);
  Tensor sums = Tensor::empty({4, 5}, DType::f64);
  for (std::int64_t i = 0; i < 4; ++i)
    for (std::int64_t e = 0; e < 5; ++e)
      sums.mutable_data<double>()[i * 5 + e] =
          c.rows.data<double>()[i * 5 + e] +
          c.genres.data<double>()[5 * c.genre.number[static_cast<std::size_t>(i)] + e] +
          c.makers.data<double>()[5 * c.maker.number[static_cast<std::size_t>(i)] + e];
  const PlainCatalogue catalogue(c.items, sums);
  Tape tape;
  const Variable expected =
      loss::full_softmax(tape, Variable(c.vectors), Tensor::from<std::int64_t>({3}, {7, 20, 3}),
                         catalogue.rows(), {.scale = 1 / 0.7, .unit = true, .longest = 1}, 3);
  EXPECT_NEAR(outcome_of(c).loss, expected.value().data<double>()[0], 1e-12);
}

TEST(ItemVectors, AnAttributesNumbersAreThoseOfItsDistinctIds) {
  const CatalogueAttribute attribute({9, 0, std::int64_t{1} << 40, 0});
  EXPECT_EQ(attribute.distinct, (Ids{0, 9, std::int64_t{1} << 40}));
  EXPECT_EQ(attribute.number, (std::vector<std::int32_t>{1, 0, 2, 0}));
  EXPECT_THROW(attribute.number_of(4), InternalError);
}

}  // namespace
}  // namespace hstu::testing_item_vectors
