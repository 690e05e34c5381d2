// include/hstu/tables.h, against the tables of training.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <unistd.h>

#include "command.h"
#include "hstu/base/random.h"
#include "hstu/embedding/table_set.h"
#include "sanitizers.h"
#include "support/table_rows.h"
#include "tables/header.h"
#include "temporary_folder.h"

namespace hstu {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Ids = std::vector<std::int64_t>;
using Values = std::vector<float>;

struct CloseTable {
  void operator()(hstu_table* table) const { hstu_table_close(table); }
};
using TableHandle = std::unique_ptr<hstu_table, CloseTable>;

hstu_table_options small_table() {
  hstu_table_options options;
  hstu_table_options_init(&options);
  options.name = "item";
  options.rows = 100;
  options.dim = 3;
  options.seed = 7;
  return options;
}

TableHandle open_table(const hstu_table_options& options) {
  TableHandle table(hstu_table_open(&options));
  EXPECT_NE(table, nullptr) << hstu_table_error();
  return table;
}

Values look_up(const TableHandle& table, const Ids& ids) {
  Values values(3 * ids.size(), -1.0f);
  EXPECT_EQ(hstu_table_lookup(table.get(), ids.data(), std::ssize(ids), values.data()), 0)
      << hstu_table_error();
  return values;
}

void update(const TableHandle& table, const Ids& ids, const Values& gradients, std::int64_t time = 0) {
  EXPECT_EQ(hstu_table_update(table.get(), ids.data(), std::ssize(ids), gradients.data(), 0.1, time), 0)
      << hstu_table_error();
}

struct AllRows {
  Ids ids;
  Values values, state;
};
AllRows all_rows(const TableHandle& table) {
  const auto n = static_cast<std::size_t>(hstu_table_rows(table.get()));
  AllRows rows{Ids(n), Values(3 * n),
               Values(n * static_cast<std::size_t>(hstu_table_state_width(table.get())))};
  std::int64_t found = -1;
  EXPECT_EQ(hstu_table_export(table.get(), std::ssize(rows.ids), rows.ids.data(), rows.values.data(),
                              rows.state.data(), &found),
            0);
  EXPECT_EQ(found, std::ssize(rows.ids));
  return rows;
}

TEST(TableHeader, HasItsDefaultsInC) {
  EXPECT_STREQ(wrong_table_default(), "");
  EXPECT_EQ(hstu_tables_version(), HSTU_TABLES_VERSION);
}

TEST(TableInterface, UpdatesAreThoseOfTrainingWithGradientsOfAnIdSummed) {
  for (const char* optimizer : {"rowwise_adagrad", "sgd", "adagrad", "adam", "adamw"}) {
    hstu_table_options options = small_table();
    options.optimizer = optimizer;
    const TableHandle table = open_table(options);
    EmbeddingTable expected({.name = "item", .rows = 100, .dim = 3},
                            {.kind = parse_word(kRowOptimizers, optimizer, "optimizer")}, 7);
    const Ids ids{5, 99, 5, -1, 100};
    const Values initial = look_up(table, ids);
    EXPECT_EQ(hstu_table_rows(table.get()), 0) << "a lookup creates nothing";
    EXPECT_THAT(Values(initial.begin() + 9, initial.end()), ::testing::Each(0.0f)) << "ids outside";
    update(table, ids, {1, 2, 3, 4, 5, 6, 0.5, 0.25, 0.125, 1, 1, 1, 2, 2, 2});
    const Ids distinct{5, 99};
    expected.update(expected.select(distinct, RowAccess::train),
                    Tensor::from<float>({2, 3}, {1.5, 2.25, 3.125, 4, 5, 6}), {.learning_rate = 0.1});
    EXPECT_EQ(look_up(table, distinct),
              testing_embedding::rows_of(expected, expected.select(distinct, RowAccess::read)))
        << optimizer;
    EXPECT_EQ(all_rows(table).ids, distinct);
    EXPECT_NE(look_up(table, ids), initial);
  }
}

TEST(TableInterface, LimitsLetRowsInAndOut) {
  hstu_table_options options = small_table();
  options.capacity = 2;
  options.evict = "lru";
  options.admit_after = 2;
  const TableHandle table = open_table(options);
  const Values one(3, 1.0f), three(9, 1.0f);
  update(table, {4}, one);
  EXPECT_THAT(all_rows(table).ids, ElementsAre()) << "the first occurrence waits";
  update(table, {4}, one);
  EXPECT_THAT(all_rows(table).ids, ElementsAre(4));
  update(table, {6, 7, 6}, three);
  update(table, {6, 7, 7}, three);
  EXPECT_THAT(all_rows(table).ids, ElementsAre(6, 7)) << "4 was not seen for longest";
  options.ttl = 64;
  options.capacity = 0;
  options.admit_after = 0;
  const TableHandle expiring = open_table(options);
  update(expiring, {1}, one, 1000);
  update(expiring, {2}, one, 1010);
  update(expiring, {3}, one, 1070);
  EXPECT_THAT(all_rows(expiring).ids, ElementsAre(2, 3));
}

TEST(TableInterface, AProcessThatWasForkedGetsAnError) {
  TableHandle table = open_table(small_table());
  update(table, {1, 2}, Values(6, 1.0f));
  const auto child = [&] {
    const Ids ids{1};
    Values values(3);
    const bool refused = hstu_table_lookup(table.get(), ids.data(), 1, values.data()) == 1 &&
                         hstu_table_update(table.get(), ids.data(), 1, values.data(), 0.1, 0) == 1 &&
                         hstu_table_rows(table.get()) == -1;
    std::fputs(hstu_table_error(), stderr);
    table.reset();
    std::_Exit(refused ? 3 : 4);
  };
  EXPECT_EXIT(child(), ::testing::ExitedWithCode(3), "opened this table, and .* open one after the fork");
  EXPECT_EQ(hstu_table_rows(table.get()), 2);
}

TEST(TableInterface, AProcessThatWasForkedOpensItsOwnTable) {
  if (kThreadSanitized) GTEST_SKIP() << "the sanitizer lets a process that was forked start no threads";
  const auto use = [] {  // enough for loops of several threads
    hstu_table_options options = small_table();
    options.rows = 1 << 17;
    const TableHandle table = open_table(options);
    Ids ids(static_cast<std::size_t>(options.rows));
    std::iota(ids.begin(), ids.end(), 0);
    update(table, ids, Values(3 * ids.size(), 1.0f));
    return hstu_table_rows(table.get()) == options.rows;
  };
  EXPECT_TRUE(use());
  const auto child = [&] {
    ::alarm(30);
    std::_Exit(use() ? 0 : 1);
  };
  EXPECT_EXIT(child(), ::testing::ExitedWithCode(0), "");
  EXPECT_TRUE(use());
}

TEST(TableInterface, ASavedTableContinuesToTheBit) {
  const Path folder = temporary_folder();
  hstu_table_options options = small_table();
  options.optimizer = "adam";
  options.capacity = 20;
  options.evict = "lfu";
  options.admit_after = 2;
  RandomStream random{.key = 3};
  const auto step = [&](std::initializer_list<const TableHandle*> tables) {
    Ids ids;
    Values gradients;
    for (int i = 0; i < 30; ++i) {
      ids.push_back(static_cast<std::int64_t>(random.below(100)));
      for (int d = 0; d < 3; ++d) gradients.push_back(static_cast<float>(random.normal()));
    }
    for (const TableHandle* table : tables) update(*table, ids, gradients);
  };
  const TableHandle table = open_table(options), again = open_table(options);
  for (int i = 0; i < 6; ++i) step({&table});
  const std::string saved = (folder / "saved").string();
  ASSERT_EQ(hstu_table_save(table.get(), saved.c_str()), 0) << hstu_table_error();
  EXPECT_EQ(hstu_table_save(table.get(), saved.c_str()), 1) << "nothing is overwritten";
  ASSERT_EQ(hstu_table_load(again.get(), saved.c_str()), 0) << hstu_table_error();
  EXPECT_EQ(hstu_table_load(again.get(), saved.c_str()), 1);
  EXPECT_THAT(hstu_table_error(), HasSubstr("it is not empty"));
  for (int i = 0; i < 6; ++i) step({&table, &again});
  const AllRows rows = all_rows(table), loaded = all_rows(again);
  EXPECT_EQ(std::ssize(rows.ids), 20);
  EXPECT_EQ(rows.ids, loaded.ids);
  EXPECT_EQ(rows.values, loaded.values);
  EXPECT_EQ(rows.state, loaded.state);
  options.seed = 8;
  const TableHandle other = open_table(options);
  EXPECT_EQ(hstu_table_load(other.get(), saved.c_str()), 1);
  EXPECT_THAT(hstu_table_error(), HasSubstr("seed"));
}

TEST(TableInterface, MistakesAreNamedAndChangeNothing) {
  const auto refused = [](auto change) {
    hstu_table_options options = small_table();
    change(options);
    EXPECT_EQ(hstu_table_open(&options), nullptr);
    return std::string(hstu_table_error());
  };
  EXPECT_THAT(refused([](auto& o) { o.dim = 0; }), HasSubstr("expected dim >= 1, found 0"));
  EXPECT_THAT(refused([](auto& o) { o.optimizer = "lion"; }), HasSubstr("unknown optimizer \"lion\""));
  EXPECT_THAT(refused([](auto& o) { o.evict = "custom"; }), HasSubstr("column of a dataset"));
  EXPECT_THAT(refused([](auto& o) { o.ttl = -1; }), HasSubstr("ttl"));
  EXPECT_THAT(refused([](auto& o) { o.bound = NAN; }), HasSubstr("bound: expected a number, found nan"));
  EXPECT_THAT(refused([](auto& o) { o.ttl = std::numeric_limits<std::int64_t>::max(); }), HasSubstr("ttl"));
  EXPECT_THAT(refused([](auto& o) { o.dim = std::numeric_limits<std::int64_t>::max(); }), HasSubstr("dim"));
  EXPECT_THAT(refused([](auto& o) { o.name = nullptr; }), HasSubstr("name is NULL"));
  EXPECT_THAT(refused([](auto& o) { o.size = 8; }), HasSubstr("hstu_table_options_init first"));
  const TableHandle table = open_table(small_table());
  const Ids ids{1, 2};
  const Values bad{1, 1, 1, 1, std::numeric_limits<float>::infinity(), 1};
  EXPECT_EQ(hstu_table_update(table.get(), ids.data(), 2, bad.data(), 0.1, 0), 1);
  EXPECT_THAT(hstu_table_error(), HasSubstr("table item: the gradient of id 2 is not finite"));
  EXPECT_EQ(hstu_table_update(table.get(), ids.data(), 1, bad.data(), NAN, 0), 1);
  EXPECT_THAT(hstu_table_error(),
              HasSubstr("table item: expected a learning rate that is a number, found nan"));
  EXPECT_EQ(hstu_table_rows(table.get()), 0);
  EXPECT_EQ(hstu_table_lookup(table.get(), nullptr, 2, nullptr), 1);
  EXPECT_EQ(hstu_table_lookup(nullptr, ids.data(), 2, nullptr), 1);
  std::int64_t rows = 0;
  EXPECT_EQ(hstu_table_export(table.get(), 5, nullptr, nullptr, nullptr, &rows), 1);
  EXPECT_THAT(hstu_table_error(), HasSubstr("ids is NULL"));
  EXPECT_EQ(hstu_table_load(table.get(), "/nonexistent"), 1);
  hstu_table_close(nullptr);
}

}  // namespace
}  // namespace hstu
