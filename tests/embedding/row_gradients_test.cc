#include "hstu/embedding/row_gradients.h"

#include <atomic>
#include <cmath>

#include <gtest/gtest.h>

#include "embedding/support.h"
#include "hstu/comm/thread_group.h"

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
    RowGradients gradients(mine);
    add(gradients, mine, {5, comm.rank()}, {1, 1, 1, 1});
    gradients.merge(comm);
    gradients.apply(0.1);
    right += eval_lookup(mine[0], {0, 1, 2, 5}) == expected && mine[0].rows_alive() == 4 ? 1 : 0;
  });
  EXPECT_EQ(right, 3);
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
