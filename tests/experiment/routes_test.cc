#include "hstu/experiment/routes.h"

#include <gtest/gtest.h>

#include "hstu/base/random.h"

namespace hstu {
namespace {

TEST(Routes, GroupTheIdsByOwnerAndKnowTheirPlaces) {
  const std::vector<FeatureSpec> features{{"item", 1000}, {"empty", 10}, {"column", 10}};
  Batch batch;
  const auto ids = batch.add<std::int64_t>(ids_column("item"), {100});
  for (std::size_t i = 0; i < ids.size(); ++i)
    ids[i] = static_cast<std::int64_t>(i * 7) - 1;  // -1 has an owner too, and reads as zeros there
  batch.add<std::int64_t>(ids_column("empty"), {0});
  const auto by_column = batch.add<std::int64_t>(ids_column("column"), {2});
  by_column[0] = 7, by_column[1] = 4;
  const RowOwners owners{.rank = 1, .ranks = 3};
  add_routes(features, {owners, owners, {.rank = 1, .ranks = 3, .form = TableRanks::column}}, batch);
  ASSERT_EQ(batch.routes(), 3u);
  const std::vector<Route> routes{batch.route(0), batch.route(1), batch.route(2)};
  const std::int64_t* const sent = routes[0].ids.data<std::int64_t>();
  const std::int32_t* const places = routes[0].positions.data<std::int32_t>();
  const auto after = batch.values<std::int64_t>(ids_column("item"));
  std::int64_t i = 0;
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_GT(routes[0].counts[static_cast<std::size_t>(rank)], 0);
    const std::int64_t end = i + routes[0].counts[static_cast<std::size_t>(rank)];
    for (std::int64_t first = i; i < end; ++i) {
      EXPECT_EQ(owners.owner(sent[i]), rank);
      EXPECT_EQ(after[static_cast<std::size_t>(places[i])], sent[i]);
      EXPECT_TRUE(i == first || places[i - 1] < places[i]);  // each once
    }
  }
  EXPECT_EQ(i, 100);
  for (const std::int64_t count : routes[1].counts) EXPECT_EQ(count, 0);
  for (const std::int64_t count : routes[2].counts) EXPECT_EQ(count, 2) << "every rank has columns of all";
  for (std::int32_t id = 0; id < 2; ++id) {
    EXPECT_EQ(routes[2].ids.data<std::int64_t>()[id], id == 0 ? 7 : 4);
    EXPECT_EQ(routes[2].positions.data<std::int32_t>()[id], id);
  }
}

}  // namespace
}  // namespace hstu
