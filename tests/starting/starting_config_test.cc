// Configurations made for a dataset train it as they are.
#include "hstu/starting/starting_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/dataset/names_writer.h"
#include "hstu/kinds/kinds.h"
#include "hstu/plan/memory_plan.h"
#include "training/run_fixture.h"

namespace hstu {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// `at(user, n)`: the time of a user's n-th event. Ids of users and genres are multiples of `id_step`.
template <typename TimeOf>
void write_events(const Path& folder, const TimeOf& time_of, std::int64_t id_step = 1,
                  bool all_positive = false) {
  Manifest description;
  description.name = "with \"quotes\"";
  description.actions = {{"positive", 1}, {"negative", 2}};
  description.label = "positive";
  description.pools = {"positive", "negative"};
  EventTable table;
  std::vector<std::int64_t> user, item, time;
  RandomStream random{3};
  for (std::int64_t u = 0; u < 30; ++u) {
    for (std::int64_t n = 0; n < 20; ++n) {
      user.push_back(u * id_step);
      item.push_back(1 + static_cast<std::int64_t>(random.below(9)));
      time.push_back(time_of(u, n));
      table.action.push_back(
          static_cast<std::uint8_t>((all_positive || random.below(2) == 0 ? 1 : 2) | kRankableBit));
    }
  }
  table.user.append(user);
  table.item.append(item);
  table.time.append(time);
  std::filesystem::create_directories(folder);
  std::vector<std::int64_t> genres{0, 1, 1, 2, 2, 3, 3, 4, 4, 5};
  for (std::int64_t& genre : genres) genre *= id_step;
  write_dataset(folder, description, table, {item_attribute("genre", genres)});
}

// Two texts of which the first says something about the label, and one that says everything.
void write_texts(const Path& folder) {
  Manifest description;
  description.name = "texts";
  description.actions = {{"positive", 1}, {"negative", 2}};
  description.label = "positive";
  description.pools = {"positive", "negative"};
  description.context = {"device", "reaction", "always", "session", "watched", "price"};
  EventTable table;
  std::vector<std::int64_t> user, item, time;
  std::vector<std::vector<std::int64_t>> contexts(description.context.size());
  RandomStream random{3};
  for (std::int64_t i = 0; i < 2'000; ++i) {
    const bool positive = random.below(2) == 0;
    user.push_back(i / 40);
    item.push_back(1 + static_cast<std::int64_t>(random.below(9)));
    time.push_back(i % 40 * 1000);
    table.action.push_back(static_cast<std::uint8_t>((positive ? 1 : 2) | kRankableBit));
    const std::int64_t device = random.below(4) == 0 ? 2 : 1;
    for (std::size_t c = 0;
         const std::int64_t value : {positive ? device : 3 - device, positive ? std::int64_t{1} : 2,
                                     std::int64_t{1}, i + 1, 1 + i % 40, i})
      contexts[c++].push_back(value);
  }
  table.user.append(user);
  table.item.append(item);
  table.time.append(time);
  for (const auto& values : contexts) table.context.emplace_back().append(values);
  std::filesystem::create_directories(folder);
  DatasetWriter writer(folder, description);
  for (const char* name : {"device", "reaction", "always", "session"}) {
    const std::vector<std::string> names = {"a", "b"};  // nobody reads them
    write_code_names(folder, fmt::format("context_{}", name), names, writer.manifest());
  }
  std::vector<std::string> seconds;
  for (int i = 0; i < 40; ++i) seconds.push_back(fmt::format("{}.5", i));
  write_code_names(folder, "context_watched", seconds, writer.manifest());
  writer.append(ordered(table));
  writer.finish({});
}

class StartingConfigs : public ::testing::Test {
 protected:
  // Trains a few steps of the configuration and returns its text.
  std::string train_as_it_is(const std::string& name, const std::string& kind = "dlrmv4") {
    ModelSection model;
    model.choose(kind);
    std::string text = starting_config(profile_dataset(folder_ / name), model.kind());
    const RunOptions options =
        parse_config<RunOptions>(text, name, std::vector<std::string>{"training.max_steps=3", "device=host"});
    check_consistency(options);
    plan_memory(options, planned_device(Device::host()).device);
    const TrainResult result = train({.options = options,
                                      .folder = create_run_folder(folder_ / (name + "_run"), options),
                                      .version = "test"});
    EXPECT_EQ(result.reason, "completed") << text;
    EXPECT_EQ(result.steps, 3);
    EXPECT_TRUE(result.evaluation) << "no evaluation";
    EXPECT_EQ(result.warning, "");
    return text;
  }
  Path folder_ = temporary_folder();
};

TEST_F(StartingConfigs, OfUsersThatComeBack) {
  write_events(folder_ / "regulars", [](std::int64_t u, std::int64_t n) { return 1000 * n + u; });
  const std::string text = train_as_it_is("regulars");
  EXPECT_THAT(text, HasSubstr("600 events of 30 users and 9 items"));
  EXPECT_THAT(text, HasSubstr("100 % of the latest samples"));
  EXPECT_THAT(text, HasSubstr("keys = [\"user\"]\nhashed = false"));
  EXPECT_THAT(text, HasSubstr("keys = [\"user\", \"genre\"]"));
  EXPECT_THAT(text, HasSubstr("history_length = 32"));
  EXPECT_THAT(text, HasSubstr("best = \"auc\""));
  EXPECT_THAT(text, HasSubstr("#   hstu train --resume RUN\n"));
}

TEST_F(StartingConfigs, HaveContextsOfTextsThatDoNotTellTheLabel) {
  write_texts(folder_ / "texts");
  const std::string text = train_as_it_is("texts");
  const auto feature = [](const char* name, const char* mark) {
    return fmt::format(
        "\n{0}[[features.context]]\n{0}name = \"{1}\"\n{0}keys = [\"{1}\"]\n{0}hashed = false\n", mark, name);
  };
  EXPECT_THAT(text, HasSubstr(feature("device", "")));
  EXPECT_THAT(text, HasSubstr("it alone says 100 % of what there is to know of the label"));
  EXPECT_THAT(text, HasSubstr(feature("reaction", "#")));
  EXPECT_THAT(text, HasSubstr("it is the same everywhere.\n#[[features.context]]\n#name = \"always\""));
  EXPECT_THAT(
      text,
      HasSubstr("different texts are too many to learn each.\n#[[features.context]]\n#name = \"session\""));
  EXPECT_THAT(text, HasSubstr("No feature: its 35 different texts are numbers with fractions.\n"
                              "#[[features.context]]\n#name = \"watched\""));
  EXPECT_THAT(text, HasSubstr("The log also has price."));
  EXPECT_THAT(text, HasSubstr("# 2 contextual tokens"));
}

TEST_F(StartingConfigs, OfTheModelOfSeveralLabelsHaveAllActions) {
  const auto regular = [](std::int64_t u, std::int64_t n) { return 1000 * n + u; };
  write_events(folder_ / "several", regular);
  EXPECT_THAT(train_as_it_is("several"),
              HasSubstr("To learn several of positive, negative at once: hstu config --template --kind"));
  std::filesystem::remove_all(folder_ / "several_run");
  std::string text = train_as_it_is("several", "ranking_gr");
  EXPECT_THAT(text, HasSubstr("\nlabels = [\"positive\", \"negative\"]\n"));
  EXPECT_THAT(text, HasSubstr("\nanchor_stride = 33\n"));
  EXPECT_THAT(text, HasSubstr("keys = [\"user\"]"));
  EXPECT_THAT(text, Not(HasSubstr("genre")));
  write_events(folder_ / "plays", regular, 1, true);
  text = train_as_it_is("plays", "ranking_gr");
  EXPECT_THAT(text, HasSubstr("\nlabels = [\"positive\"]\n"));
  EXPECT_THAT(text, HasSubstr("\ncandidates = 1\n"));
  EXPECT_THAT(text, Not(HasSubstr("anchor_stride")));
}

TEST_F(StartingConfigs, OfUsersAsSamplesSayHowARunGoesOnEveryDay) {
  write_events(folder_ / "plays", [](std::int64_t u, std::int64_t n) { return 500 * n + u; });
  const auto kind = std::ranges::find_if(kinds(), [](const Kind& k) { return k.samples_are_users; });
  EXPECT_THAT(starting_config(profile_dataset(folder_ / "plays"), *kind),
              HasSubstr("\n#split = \"\"\n#holdout_seconds = 190\nbatch_size"));
}

TEST_F(StartingConfigs, OfUsersThatComeOnce) {
  write_events(folder_ / "guests", [](std::int64_t u, std::int64_t n) { return 1000 * u + n; });
  const std::string text = train_as_it_is("guests");
  EXPECT_THAT(text, HasSubstr("No feature identifies the user"));
  EXPECT_THAT(text, Not(HasSubstr("[[features.context]]")));
}

TEST_F(StartingConfigs, OfHashedIdsHaveARowForEach) {
  write_events(
      folder_ / "hashed", [](std::int64_t u, std::int64_t n) { return 1000 * n + u; }, std::int64_t{1} << 57);
  const std::string text = train_as_it_is("hashed");
  EXPECT_THAT(text, HasSubstr("[[features.attributes]]\nname = \"genre\""));
  EXPECT_THAT(text, HasSubstr("keys = [\"user\"]\nhashed = false"));
}

TEST_F(StartingConfigs, OfOneTimeHoldOutUsers) {
  write_events(folder_ / "instant", [](std::int64_t, std::int64_t) { return 7; });
  EXPECT_THAT(train_as_it_is("instant"), HasSubstr("train_user_fraction = 0.9"));
}

TEST_F(StartingConfigs, OfPositivesAloneDrawNegatives) {
  write_events(
      folder_ / "positives", [](std::int64_t u, std::int64_t n) { return 1000 * n + u; }, 1, true);
  const std::string text = train_as_it_is("positives");
  EXPECT_THAT(text, HasSubstr("The log has positives alone."));
  EXPECT_THAT(text,
              HasSubstr("negatives = { per_positive = 2, from = \"popularity\", exclude_seen = false }"));
  EXPECT_THAT(text, HasSubstr("Users come back"));
  EXPECT_THAT(text, HasSubstr("\nnegatives = 4\n"));
  EXPECT_THAT(text, HasSubstr("best = \"ndcg@10\""));
  EXPECT_THAT(text, Not(HasSubstr("user_x_genre")));
}

TEST_F(StartingConfigs, OfAKindWithOtherMetricsFollowItsHeadline) {
  static constexpr MetricSpec kMetrics[] = {{.name = "mae", .title = "MAE", .better = Better::smaller}};
  Kind kind = kinds().front();
  kind.metrics = kMetrics;
  for (const bool all_positive : {false, true}) {
    const Path data = folder_ / (all_positive ? "one_class" : "two_classes");
    write_events(
        data, [](std::int64_t u, std::int64_t n) { return 1000 * n + u; }, 1, all_positive);
    const std::string text = starting_config(profile_dataset(data), kind);
    EXPECT_THAT(text, HasSubstr("\nbest = \"mae\"\n"));
    EXPECT_THAT(text, Not(HasSubstr("AUC")));
    EXPECT_THAT(text, Not(HasSubstr("ranking_k")));
  }
}

}  // namespace
}  // namespace hstu
