#include "hstu/embedding/row_gradients.h"

#include <atomic>
#include <cmath>
#include <cstring>

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
  of_parts.apply({.learning_rate = 0.1});
  of_whole.apply({.learning_rate = 0.1});
  EXPECT_EQ(eval_lookup(parts[0], {7, 3, 9}), eval_lookup(whole[0], {7, 3, 9}));
  EXPECT_EQ(parts[1].rows_alive(), 0);
}

TEST(RowGradients, OfRanksLeaveEqualTablesEverywhere) {
  TableSet whole(kTables, kAdagrad, 1);
  RowGradients of_whole(whole);
  add(of_whole, whole, {5, 0, 1, 2}, {3, 3, 1, 1, 1, 1, 1, 1});
  of_whole.merge(one_rank());
  of_whole.apply({.learning_rate = 0.1});
  const auto expected = eval_lookup(whole[0], {0, 1, 2, 5});
  std::atomic<int> right = 0;
  run_ranks(3, [&](Communicator& comm) {
    TableSet mine(kTables, kAdagrad, 1, host_context(),
                  divide_tables(kTables, kAdagrad.kind, comm.rank(), comm.size()));
    mine.share_over(comm, nullptr);
    ASSERT_FALSE(mine.is_distributed()) << "small tables are copied";
    RowGradients gradients(mine);
    add(gradients, mine, {5, comm.rank()}, {1, 1, 1, 1});
    gradients.merge(comm);
    gradients.apply({.learning_rate = 0.1});
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
    std::vector<Tensor> gradients;
    for (std::size_t t = 0; t < configs.size(); ++t) gradients.push_back(Tensor::from<float>({2, 5}, ones));
    of_alone.add(alone.select(ids, RowAccess::train), std::move(gradients));
  }
  of_alone.merge(one_rank());
  of_alone.apply({.learning_rate = 0.1});
  std::atomic<int> right = 0;
  run_ranks(3, [&](Communicator& comm) {
    TableSet mine(configs, kSgd, 1, host_context(),
                  divide_tables(configs, kSgd.kind, comm.rank(), comm.size()));
    mine.share_over(comm, nullptr);
    const std::vector<Tensor> ids(configs.size(), tensor({5, comm.rank()}));
    std::int64_t before = comm.activity().collectives;
    HostLookup(mine, ids).finish(RowAccess::train);
    EXPECT_EQ(comm.activity().collectives - before, 2);
    RowGradients gradients(mine);
    RowSelection selection;
    for (const Tensor& of_table : ids) selection.tables.push_back({.ids = of_table, .handles = {}});
    gradients.add(std::move(selection),
                  std::vector<Tensor>(configs.size(), Tensor::from<float>({2, 5}, ones)));
    before = comm.activity().collectives;
    gradients.merge(comm);
    EXPECT_EQ(comm.activity().collectives - before, 2);
    gradients.apply({.learning_rate = 0.1});
    const std::vector<Tensor> all(configs.size(), tensor({0, 1, 2, 5, 9}));
    const std::vector<Tensor> rows = HostLookup(mine, all).finish(RowAccess::read).rows;
    for (std::size_t t = 0; t < configs.size(); ++t) {
      const std::vector<float> expected = eval_lookup(alone[t], {0, 1, 2, 5, 9});
      right += std::equal(expected.begin(), expected.end(), rows[t].data<float>()) ? 1 : 0;
    }
  });
  EXPECT_EQ(right, 3 * static_cast<int>(configs.size()));
}

class GivenBytes final : public CollectiveTrace {
 public:
  void begin(std::string_view, std::int64_t bytes) override { given.push_back(bytes); }
  void end() override {}
  std::vector<std::int64_t> given;  // to each collective
};

// Both ranks read rows ahead of an update of two of them, which creates one.
TEST(HostLookup, BringsOnlyRowsThatHaveChangedSinceTheyWereReadAhead) {
  constexpr RowOptimizer kSgd{.kind = RowOptimizerKind::sgd};
  std::vector<TableConfig> configs{{.name = "split", .rows = 100, .dim = 4},
                                   {.name = "column", .rows = 100, .dim = 4}};
  configs[0].ranks = TableRanks::split;
  configs[1].ranks = TableRanks::column;
  std::atomic<int> right = 0;
  run_ranks(2, [&](Communicator& comm) {
    TableSet mine(configs, kSgd, 1, host_context(),
                  divide_tables(configs, kSgd.kind, comm.rank(), comm.size()));
    mine.share_over(comm, nullptr);
    const std::vector<Tensor> ids(2, tensor({3, 7, 8, 9, -1}));
    HostLookup(mine, std::vector<Tensor>(2, tensor({3, 8}))).finish(RowAccess::train);

    HostLookup lookup(mine, ids);
    lookup.read_ahead();
    const std::int64_t rows = comm.sum(mine[0].rows_alive());
    EXPECT_EQ(rows, 2);
    for (const std::int64_t id : {7, 8}) {
      for (std::size_t t = 0; t < 2; ++t) {
        if (!mine[t].owners().owns(id)) continue;
        const std::vector<float> ones(static_cast<std::size_t>(mine[t].width()), 1.0f);
        apply_gradients(mine[t], Ids{id}, ones.data(), 0.5);
      }
    }
    GivenBytes trace;
    comm.set_trace(&trace);
    const FetchedRows fetched = lookup.finish(RowAccess::train);
    comm.set_trace(nullptr);
    const FetchedRows at_once = HostLookup(mine, ids).finish(RowAccess::read);
    for (std::size_t t = 0; t < 2; ++t)
      right +=
          std::memcmp(fetched.rows[t].raw(), at_once.rows[t].raw(), fetched.rows[t].bytes()) == 0 ? 1 : 0;
    // Numbers, then values: of the split rows that this rank owns, and its half of the others' columns.
    ASSERT_EQ(trace.given.size(), 2u);
    const std::int64_t owned = (mine[0].owners().owns(7) ? 1 : 0) + (mine[0].owners().owns(8) ? 1 : 0);
    EXPECT_EQ(trace.given[0], 2 * (owned + 2) * 8);
    EXPECT_EQ(trace.given[1], 2 * (owned * 4 + 2 * 2) * 4);
    EXPECT_EQ(comm.sum(mine[0].rows_alive()), 4);
  });
  EXPECT_EQ(right, 4);
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
