// Rows gathered from several tables into one tensor: what gathering each and concatenating gives.
#include <gtest/gtest.h>

#include "hstu/ops/elementwise.h"
#include "hstu/ops/gather_sum.h"
#include "support/op_cases.h"

namespace hstu {
namespace {

using testing::random_tensor;
using Index = std::vector<std::int32_t>;

// Results, and the gradients of the tables, of op(tape, tables).
template <typename Op>
std::vector<std::vector<float>> results(const std::vector<Tensor>& tables, const Op& op) {
  Tape tape;
  std::vector<Variable> rows;
  rows.reserve(tables.size());
  for (const Tensor& table : tables) rows.push_back(Variable(table.copy()));
  const Variable y = op(tape, rows);
  tape.backward(y, random_tensor(y.value().shape(), DType::f32, 9));
  std::vector<std::vector<float>> all{{y.value().data<float>(), y.value().data<float>() + y.value().size()}};
  for (const Variable& row : rows)
    all.emplace_back(row.gradient().data<float>(), row.gradient().data<float>() + row.gradient().size());
  return all;
}

// The third part is of the first table, as a candidate's row is of the table of its history.
TEST(GatherColumns, IsTheGatheredRowsSideBySide) {
  const std::vector<Tensor> tables{random_tensor({5, 3}, DType::f32, 1),
                                   random_tensor({2, 4}, DType::f32, 2)};
  const Tensor a = ops::row_index(Index{4, -1, 0, 4}), b = ops::row_index(Index{1, 1, 0, -1}),
               c = ops::row_index(Index{0, 4, 4, 2});
  EXPECT_EQ(results(tables,
                    [&](Tape& tape, const std::vector<Variable>& v) {
                      return ops::gather_columns(tape, {{v[0], a}, {v[1], b}, {v[0], c}});
                    }),
            results(tables, [&](Tape& tape, const std::vector<Variable>& v) {
              const Variable third = ops::gather_sum(tape, {{v[0], c, 1}}, {});
              return ops::concat_columns(tape, {ops::gather_sum(tape, {{v[0], a, 1}}, {}),
                                                ops::gather_sum(tape, {{v[1], b, 1}}, {}), third});
            }));
}

TEST(GatherBlocks, AreTheGatheredRowsOneBelowTheOther) {
  const std::vector<Tensor> tables{random_tensor({5, 3}, DType::f32, 1),
                                   random_tensor({2, 3}, DType::f32, 2)};
  const Tensor a = ops::row_index(Index{4, -1, 0, 4}), b = ops::row_index(Index{1}),
               none = ops::row_index({});
  EXPECT_EQ(results(tables,
                    [&](Tape& tape, const std::vector<Variable>& v) {
                      return ops::gather_blocks(tape, {{v[0], a}, {v[1], none}, {v[1], b}});
                    }),
            results(tables, [&](Tape& tape, const std::vector<Variable>& v) {
              return ops::concat_rows(tape, {ops::gather_sum(tape, {{v[0], a, 1}}, {}),
                                             ops::gather_sum(tape, {{v[1], b, 1}}, {})});
            }));
}

TEST(GatherColumns, RefusesPartsOfDifferentLengths) {
  Tape tape;
  const Variable rows(random_tensor({5, 3}, DType::f32, 1));
  EXPECT_THROW(ops::gather_columns(tape, {{rows, ops::row_index({1, 2})}, {rows, ops::row_index({1})}}),
               Error);
}

TEST(GatherBlocks, RefuseRowsOfDifferentWidths) {
  Tape tape;
  const Variable rows(random_tensor({5, 3}, DType::f32, 1)), wider(random_tensor({5, 4}, DType::f32, 1));
  EXPECT_THROW(ops::gather_blocks(tape, {{rows, ops::row_index({1})}, {wider, ops::row_index({1})}}), Error);
}

TEST(GatherRows, RefusesARowThatIsNotThere) {
  Tape tape;
  const Variable rows(random_tensor({5, 3}, DType::f32, 1));
  EXPECT_THROW(ops::gather_rows(tape, rows, ops::row_index({5})), Error);
}

}  // namespace
}  // namespace hstu
