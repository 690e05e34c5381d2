// Tasks are made from facts of a dataset, or from those that a configuration states.
#include "hstu/options/make_task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/task/dataset_facts.h"
#include "hstu/task/kind.h"
#include "training/small_dataset.h"

namespace hstu {
namespace {

using ::testing::HasSubstr;

std::vector<std::string> tables_of(const Task& task) {
  std::vector<std::string> tables;
  for (const FeatureSpec& feature : task.model->features())
    tables.push_back(fmt::format("{} {}", feature.name, feature.rows));
  return tables;
}

TEST(MakeTask, NeedsNoDatasetIfTheConfigurationStatesAllFacts) {
  const Path folder = temporary_folder();
  testing::write_small_dataset(folder);
  RunOptions options = testing::small_run(folder);
  options.data.options.pools = {"positive", "negative"};
  options.features.item_rows = 12;
  options.features.context = {{"user", {"user"}, 40, false}, {"crossed", {"user", "worth"}, 100, true}};
  for (const char* const kind : {"dlrmv4", "ranking_gr"}) {
    options.model.choose(kind);
    const Task of_dataset = make_task(options, facts_of(Dataset(folder)));
    const Task stated = make_task(options, stated_facts(task_request(options)));
    EXPECT_EQ(tables_of(stated), tables_of(of_dataset)) << kind;
    const auto expected = of_dataset.model->parameters().all(), found = stated.model->parameters().all();
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t p = 0; p < found.size(); ++p) {
      EXPECT_EQ(found[p]->name, expected[p]->name);
      EXPECT_EQ(found[p]->value.shape(), expected[p]->value.shape()) << found[p]->name;
    }
  }
}

TEST(MakeTask, NamesAFactThatTheConfigurationDoesNotState) {
  const RunOptions options = testing::small_run("nowhere");
  const auto message = [&](const RunOptions& of) -> std::string {
    try {
      make_task(of, stated_facts(task_request(of)));
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(message(options), HasSubstr("item.npy does not say the largest value: give the rows"));
  RunOptions with_items = options;
  with_items.features.item_rows = 12;
  EXPECT_THAT(message(with_items), HasSubstr("user_ids.npy"));
}

TEST(ModelSection, AnUnknownKindIsAnErrorThatListsTheNames) {
  ModelSection model;
  EXPECT_EQ(model.kind().name, "dlrmv4");
  try {
    model.choose("dlrm");
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("\"dlrm\"; the kinds are dlrmv4, ranking_gr"));
  }
}

TEST(ModelSection, CopiesAreApart) {
  RunOptions options;
  dlrmv4_of(options).layers = 3;
  RunOptions copy = options;
  dlrmv4_of(copy).layers = 5;
  EXPECT_EQ(dlrmv4_of(options).layers, 3);
  copy.model.choose("dlrmv4");
  EXPECT_EQ(dlrmv4_of(copy).layers, 5) << "the kind that it is already";
  ranking_gr_of(copy).layers = 7;
  options = copy;
  EXPECT_EQ(options.model.kind().name, "ranking_gr");
  EXPECT_EQ(ranking_gr_of(options).layers, 7);
}

}  // namespace
}  // namespace hstu
