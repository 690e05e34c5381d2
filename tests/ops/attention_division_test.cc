// Attention of samples whose tokens the ranks of a group share, against that of one rank: the same bits.
#include <algorithm>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "hstu/comm/thread_group.h"
#include "hstu/ops/attention.h"
#include "hstu/ops/gather_sum.h"
#include "support/op_cases.h"

namespace hstu::ops::testing_division {
namespace {

using hstu::testing::CaseSize;
using hstu::testing::JaggedShape;
using hstu::testing::random_tensor;

struct MaskCase {
  std::string name;
  std::int64_t queries = -1;  // of each sample, its last; -1: all tokens
  std::function<void(JaggedShape&)> change = [](JaggedShape&) {};
  std::int64_t tables = 0;  // rows of bias tables; 0: none
};

void add_contexts_and_targets(JaggedShape& of) {
  of.attention.contexts = row_index({0, 1, 2, 0, 3});
  of.attention.targets = row_index({0, 2, 0, 4, 5});
  of.attention.mask.target_group = 2;
}

void add_times(JaggedShape& of) {
  std::vector<std::int64_t> times;
  RandomStream random{11};
  for (std::int64_t i = 0; i < of.queries + of.tokens; ++i)
    times.push_back(static_cast<std::int64_t>(random.below(50)));
  of.attention.bias.thresholds = Tensor::from<std::int64_t>({2}, {4, 20});
  of.attention.bias.query_time =
      Tensor::from<std::int64_t>({of.queries}, std::vector(times.begin(), times.begin() + of.queries));
  of.attention.bias.key_time =
      Tensor::from<std::int64_t>({of.tokens}, std::vector(times.begin() + of.queries, times.end()));
}

const std::vector<MaskCase> kMasks{
    {"causal"},
    {"window", -1, [](JaggedShape& of) { of.attention.mask.left = 3, of.attention.mask.right = 1; }},
    {"not causal", -1, [](JaggedShape& of) { of.attention.mask.right = -1; }},
    {"contexts and targets", -1, add_contexts_and_targets},
    {"last queries of contexts and targets", 3, add_contexts_and_targets},
    {"hidden keys", -1,
     [](JaggedShape& of) { of.attention.mask.hidden_period = 4, of.attention.mask.hidden_phase = 1; }},
    {"one bias of all heads", -1, add_times, 1},
    {"a bias of each head, last queries", 2, add_times, 4},
    {"softmax with dropout", -1, [](JaggedShape& of) {
       of.attention.score = ScoreFunction::softmax;
       of.attention.dropout = {0.3, 17, hstu::testing::random_names(of.queries, 12)};
     }}};

// The rank of each row.
using RowDivision = std::function<std::int32_t(std::int64_t row, std::int64_t rows, int ranks)>;
const std::vector<std::pair<std::string, RowDivision>> kRows{
    {"mirrored pieces",
     [](std::int64_t row, std::int64_t rows, int ranks) {
       const auto piece = static_cast<std::int32_t>(row * 2 * ranks / rows);
       return std::min(piece, 2 * ranks - 1 - piece);
     }},
    {"none on the first rank", [](std::int64_t row, std::int64_t, int ranks) {
       return 1 + static_cast<std::int32_t>(row * row % (ranks - 1));
     }}};

struct Values {
  Tensor o;
  std::vector<Tensor> gradients;  // of q, k, v, tables
};

class AttentionDivisionTest : public ::testing::Test {
 protected:
  static constexpr CaseSize kSize{.heads = 4, .head_dim = 3};
  static constexpr std::int64_t kWidth = 12;

  // q, k, v, d_o, and tables.
  static std::vector<Tensor> operands(const JaggedShape& jagged, std::int64_t tables, DType type) {
    std::vector<Tensor> all;
    for (const std::int64_t rows : {jagged.queries, jagged.tokens, jagged.tokens, jagged.queries})
      all.push_back(random_tensor({rows, kWidth}, type, all.size()));
    for (const std::int64_t columns : {5, 3})
      if (tables > 0) all.push_back(random_tensor({tables, columns}, type, all.size()));
    return all;
  }

  static Values compute(const std::vector<Tensor>& operands, AttentionShape shape) {
    std::vector<Variable> v;
    v.reserve(operands.size());
    for (const Tensor& operand : operands) v.emplace_back(operand.copy());
    if (operands.size() > 4) shape.bias.position_table = v[4], shape.bias.time_table = v[5];
    Tape tape;
    const Variable o = attention(tape, v[0], v[1], v[2], shape);
    Values values{o.value().copy(), {}};
    tape.backward(o, operands[3]);
    for (std::size_t i = 0; i < v.size(); ++i)
      if (i != 3) values.gradients.push_back(v[i].gradient());
    return values;
  }
};

// Rows of x that rank `rank` has.
Tensor rows_of(const Tensor& x, const std::vector<std::int32_t>& rank_of_row, int rank) {
  std::vector<std::int32_t> mine;
  for (std::size_t t = 0; t < rank_of_row.size(); ++t)
    if (rank_of_row[t] == rank) mine.push_back(static_cast<std::int32_t>(t));
  Tape tape(false);
  return gather_rows(tape, Variable::constant(x), row_index(mine)).value();
}

template <typename T>
void expect_bits(const Tensor& found, const Tensor& expected, const std::string& what) {
  ASSERT_EQ(found.shape(), expected.shape()) << what;
  EXPECT_TRUE(std::equal(found.data<T>(), found.data<T>() + found.size(), expected.data<T>())) << what;
}

TEST_F(AttentionDivisionTest, HasTheBitsOfOneRank) {
  for (const MaskCase& mask : kMasks) {
    for (const DType type : {DType::f32, DType::f64}) {
      JaggedShape jagged = hstu::testing::jagged_shape(kSize, mask.queries, type, host_context());
      mask.change(jagged);
      const std::vector<Tensor> all = operands(jagged, mask.tables, type);
      const Values whole = compute(all, jagged.attention);
      for (const int ranks : {2, 3, 4}) {
        for (const auto& [name, rank_of] : kRows) {
          const auto what = fmt::format("{}, {} ranks, {}", mask.name, ranks, name);
          std::vector<std::int32_t> of_queries, of_tokens;
          for (std::int64_t t = 0; t < jagged.queries; ++t)
            of_queries.push_back(rank_of(t, jagged.queries, ranks));
          for (std::int64_t t = 0; t < jagged.tokens; ++t)
            of_tokens.push_back(rank_of(t, jagged.tokens, ranks));
          run_ranks(ranks, [&](Communicator& comm) {
            const Group group{comm};
            AttentionShape shape = jagged.attention;
            shape.division = std::make_shared<AttentionDivision>(
                AttentionDivision{group, divided_rows(of_queries, group), divided_rows(of_tokens, group)});
            const auto mine = [&](const Tensor& x, bool has_queries) {
              return rows_of(x, has_queries ? of_queries : of_tokens, comm.rank());
            };
            std::vector<Tensor> of_rank = all;
            for (std::size_t i = 0; i < 4; ++i) of_rank[i] = mine(all[i], i == 0 || i == 3);
            Values found = compute(of_rank, shape);
            with_float_type(type, [&]<typename T>() {
              expect_bits<T>(found.o, mine(whole.o, true), what);
              for (std::size_t i = 0; i < 3; ++i)
                expect_bits<T>(found.gradients[i], mine(whole.gradients[i], i == 0), what);
              for (std::size_t i = 3; i < found.gradients.size(); ++i) {
                Tensor& table = found.gradients[i];
                comm.all_reduce_sum(
                    std::span(table.mutable_data<T>(), static_cast<std::size_t>(table.size())));
                for (std::int64_t e = 0; e < table.size(); ++e)
                  EXPECT_NEAR(table.data<T>()[e], whole.gradients[i].data<T>()[e],
                              type == DType::f64 ? 1e-12 : 1e-4)
                      << what;
              }
            });
          });
        }
      }
    }
  }
}

}  // namespace
}  // namespace hstu::ops::testing_division
