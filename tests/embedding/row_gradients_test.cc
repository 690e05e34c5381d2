#include "hstu/embedding/row_gradients.h"

#include <atomic>
#include <cmath>

#include <gtest/gtest.h>

#include "embedding/support.h"
#include "hstu/comm/thread_group.h"
#include "hstu/embedding/table_division.h"

namespace hstu {
namespace {

using namespace testing_embedding;

constexpr RowOptimizer kAdagrad{.kind = RowOptimizerKind::rowwise_adagrad};
const std::vector<TableConfig> kTables{{"a", 100, 2}, {"b", 50, 2}};

Tensor gradient(const std::vector<float>& values) {
  return Tensor::from<float>({static_cast<std::int64_t>(values.size()) / 2, 2}, values);
}

void add(RowGradients& gradients, TableSet& tables, const Ids& a, const std::vector<float>& values) {
  const std::vector<Tensor> ids{tensor(a), tensor({})};
  gradients.add(tables.select(ids, RowAccess::train), {gradient(values), Tensor()});
}

// Two updates by g are not one update by 2 g under Adagrad: an id of two parts must move once.
TEST(RowGradients, OfPartsAreSummedByIdBeforeTheOneUpdate) {
  TableSet parts(kTables, kAdagrad, 1), whole(kTables, kAdagrad, 1);
  RowGradients of_parts(parts), of_whole(whole);
  add(of_parts, parts, {7, 3}, {0.5f, -1.0f, 4, 5});
  add(of_parts, parts, {9, 7}, {1, 2, 0.25f, 3.0f});
  add(of_whole, whole, {7, 3, 9}, {0.75f, 2.0f, 4, 5, 1, 2});
  for (RowGradients* gradients : {&of_parts, &of_whole}) gradients->merge(one_rank());
  of_parts.apply(0.1);
  of_whole.apply(0.1);
  EXPECT_EQ(eval_lookup(parts[0], {7, 3, 9}), eval_lookup(whole[0], {7, 3, 9}));
  EXPECT_EQ(parts[1].rows_alive(), 0);
}

TEST(RowGradients, OfRanksLeaveEqualTablesEverywhere) {
  TableSet whole(kTables, kAdagrad, 1);
  RowGradients of_whole(whole);
  add(of_whole, whole, {5, 0, 1, 2}, {3, 3, 1, 1, 1, 1, 1, 1});
  of_whole.merge(one_rank());
  of_whole.apply(0.1);
  const auto expected = eval_lookup(whole[0], {0, 1, 2, 5});
  std::atomic<int> right = 0;
  run_ranks(3, [&](Communicator& comm) {
    TableSet mine(kTables, kAdagrad, 1);
    mine.share_over(comm, nullptr, divide_tables(kTables, kAdagrad.kind, comm.rank(), comm.size()));
    ASSERT_FALSE(mine.moves_rows()) << "small tables are copied";
    RowGradients gradients(mine);
    add(gradients, mine, {5, comm.rank()}, {1, 1, 1, 1});
    gradients.merge(comm);
    gradients.apply(0.1);
    right += eval_lookup(mine[0], {0, 1, 2, 5}) == expected && mine[0].rows_alive() == 4 ? 1 : 0;
  });
  EXPECT_EQ(right, 3);
}

// Tables shared in all ways: the lookup takes two collectives, the gradients two, and rows are those of one
// rank.
TEST(RowGradients, OfAllTablesTravelTogether) {
  constexpr RowOptimizer kSgd{.kind = RowOptimizerKind::sgd};
  std::vector<TableConfig> configs;
  for (const auto& [word, form] : kTableRanks)
    configs.push_back({.name = std::string(word), .rows = 100, .dim = 5});
  for (std::size_t t = 0; t < configs.size(); ++t) configs[t].ranks = kTableRanks[t].value;
  TableSet alone(configs, kSgd, 1);
  const std::vector<float> ones(10, 1.0f);
  RowGradients of_alone(alone);
  for (const std::int64_t rank : {0, 1, 2}) {
    const std::vector<Tensor> ids(configs.size(), tensor({5, rank}));
    of_alone.add(alone.select(ids, RowAccess::train),
                 std::vector<Tensor>(configs.size(), Tensor::from<float>({2, 5}, ones)));
  }
  of_alone.merge(one_rank());
  of_alone.apply(0.1);
  std::atomic<int> right = 0;
  run_ranks(3, [&](Communicator& comm) {
    TableSet mine(configs, kSgd, 1);
    mine.share_over(comm, nullptr, divide_tables(configs, kSgd.kind, comm.rank(), comm.size()));
    const std::vector<Tensor> ids(configs.size(), tensor({5, comm.rank()}));
    std::int64_t before = comm.activity().collectives;
    fetch_rows(mine, ids, RowAccess::train);
    EXPECT_EQ(comm.activity().collectives - before, 2);
    RowGradients gradients(mine);
    RowSelection selection;
    for (const Tensor& of_table : ids) selection.tables.push_back({.ids = of_table, .slots = {}});
    gradients.add(std::move(selection),
                  std::vector<Tensor>(configs.size(), Tensor::from<float>({2, 5}, ones)));
    before = comm.activity().collectives;
    gradients.merge(comm);
    EXPECT_EQ(comm.activity().collectives - before, 2);
    gradients.apply(0.1);
    const std::vector<Tensor> all(configs.size(), tensor({0, 1, 2, 5, 9}));
    const std::vector<Tensor> rows = fetch_rows(mine, all, RowAccess::read);
    for (std::size_t t = 0; t < configs.size(); ++t) {
      const std::vector<float> expected = eval_lookup(alone[t], {0, 1, 2, 5, 9});
      right += std::equal(expected.begin(), expected.end(), rows[t].data<float>()) ? 1 : 0;
    }
  });
  EXPECT_EQ(right, 3 * static_cast<int>(configs.size()));
}

TEST(RowGradients, NameTheFirstOneThatIsNotFinite) {
  TableSet tables(kTables, kAdagrad, 1);
  RowGradients gradients(tables);
  add(gradients, tables, {1, 2}, {0, 1, 2, 3});
  EXPECT_FALSE(gradients.first_bad());
  add(gradients, tables, {4, 5, 6}, {0, 0, 0, INFINITY, NAN, 0});
  const auto bad = gradients.first_bad();
  ASSERT_TRUE(bad);
  EXPECT_EQ(bad->table, 0u);
  EXPECT_EQ(bad->id, 5);
}

}  // namespace
}  // namespace hstu
