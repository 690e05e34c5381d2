#include "hstu/synthetic/generate_truth.h"

#include <cmath>
#include <map>

#include <gmock/gmock.h>

#include "hstu/base/json.h"
#include "hstu/metrics/auc.h"
#include "synthetic/generated_events.h"

namespace hstu {
namespace {

TEST(GenerateTruth, HistoryIsWorthAtLeastEightHundredthsOfAuc) {
  const Truth& truth = shared_log().truth;
  EXPECT_GE(*truth.oracle.auc, *truth.baseline.auc + 0.08);
  EXPECT_GT(*truth.oracle.auc, 0.79);
  EXPECT_LT(*truth.oracle.auc, 0.88);
  EXPECT_GT(*truth.baseline.auc, 0.57);  // running means know something, too
  EXPECT_LT(*truth.baseline.auc, 0.72);
  EXPECT_LT(*truth.oracle.ne, *truth.baseline.ne - 0.1);
  EXPECT_LT(*truth.baseline.ne, 1.0);
}

TEST(GenerateTruth, LastDayFileHoldsExactlyTheListensOfTheLastDay) {
  const SharedLog& log = shared_log();
  const auto table = read_table(log.folder / "truth_last_day.parquet");
  const auto uid = values<arrow::UInt32Type>(*table, "uid");
  const auto timestamp = values<arrow::UInt32Type>(*table, "timestamp");
  const auto item = values<arrow::UInt32Type>(*table, "item_id");
  const auto label = values<arrow::UInt8Type>(*table, "label");

  const Events& events = log.events;
  const std::int64_t newest = *std::max_element(events.timestamp.begin(), events.timestamp.end());
  EXPECT_EQ(log.truth.to, newest);
  EXPECT_EQ(log.truth.from, newest + 1 - 86'400);
  std::size_t row = 0;
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (!events.is_listen(i) || events.timestamp[i] < log.truth.from) continue;
    ASSERT_LT(row, uid.size());
    ASSERT_EQ(uid[row], events.uid[i]);
    ASSERT_EQ(timestamp[row], events.timestamp[i]);
    ASSERT_EQ(item[row], events.item_id[i]);
    ASSERT_EQ(label[row] != 0, events.is_listen_plus(i));
    ++row;
  }
  EXPECT_EQ(row, uid.size());
  EXPECT_GT(row, 1000u);
}

TEST(GenerateTruth, JsonAgreesWithTheFiles) {
  const SharedLog& log = shared_log();
  const Json json = Json::parse(read_file(log.folder / "truth.json"));
  const auto table = read_table(log.folder / "truth_last_day.parquet");
  const auto label = values<arrow::UInt8Type>(*table, "label");
  const auto probability = values<arrow::DoubleType>(*table, "probability");
  EXPECT_NEAR(json["oracle"]["auc"].get<double>(), *auc(probability, label), 1e-12);
  double cross_entropy = 0, positives = 0;
  for (std::size_t i = 0; i < label.size(); ++i) {
    cross_entropy -= std::log(label[i] != 0 ? probability[i] : 1 - probability[i]);
    positives += label[i];
  }
  const double n = static_cast<double>(label.size()), mean = positives / n;
  EXPECT_NEAR(json["oracle"]["ne"].get<double>(),
              cross_entropy / n / -(mean * std::log(mean) + (1 - mean) * std::log(1 - mean)), 1e-6);
  EXPECT_EQ(json["oracle"]["n"], label.size());
  EXPECT_EQ(json["oracle"]["n_pos"], static_cast<std::int64_t>(positives));
  EXPECT_EQ(json["oracle"]["to"], log.truth.to);
  EXPECT_EQ(json["counts"]["events"], log.events.size());
  EXPECT_EQ(json["parameters"]["seed"], 1);
  EXPECT_EQ(json["parameters"]["users"], 400);
}

TEST(GenerateTruth, ProbabilitiesAreThoseOfTheCoins) {
  const auto table = read_table(shared_log().folder / "truth_last_day.parquet");
  const auto label = values<arrow::UInt8Type>(*table, "label");
  const auto probability = values<arrow::DoubleType>(*table, "probability");
  for (int bin = 0; bin < 5; ++bin) {  // also within each fifth of the scale
    double excess = 0, variance = 0;
    for (std::size_t i = 0; i < label.size(); ++i) {
      if (static_cast<int>(probability[i] * 5) != bin) continue;
      excess += label[i] - probability[i];
      variance += probability[i] * (1 - probability[i]);
    }
    EXPECT_GT(variance, 20) << "bin " << bin;
    EXPECT_LT(std::abs(excess), 4 * std::sqrt(variance)) << "bin " << bin;
  }
}

TEST(GenerateTruth, BaselineIsThatOfRunningMeansBeforeTheLastDay) {
  const SharedLog& log = shared_log();
  const Events& events = log.events;
  struct Rate {
    double positives = 0, listens = 0;
  };
  std::map<std::uint32_t, Rate> users, items;
  Rate all;
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (!events.is_listen(i) || events.timestamp[i] >= log.truth.from) continue;
    for (Rate* rate : {&users[events.uid[i]], &items[events.item_id[i]], &all}) {
      rate->positives += events.is_listen_plus(i);
      rate->listens += 1;
    }
  }
  const double global = (all.positives + 1) / (all.listens + 2);
  const auto logit = [&](const Rate& rate) {
    const double p = (rate.positives + 10 * global) / (rate.listens + 10);
    return std::log(p / (1 - p));
  };
  std::vector<float> scores;
  std::vector<std::uint8_t> labels;
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (!events.is_listen(i) || events.timestamp[i] < log.truth.from) continue;
    const double sum =
        logit(users[events.uid[i]]) + logit(items[events.item_id[i]]) - std::log(global / (1 - global));
    scores.push_back(static_cast<float>(1 / (1 + std::exp(-sum))));
    labels.push_back(events.is_listen_plus(i));
  }
  EXPECT_NEAR(*log.truth.baseline.auc, *auc(std::span<const float>(scores), labels), 1e-6);
}

GeneratedEvent listen(std::uint32_t timestamp, std::uint16_t ratio) {
  return {timestamp, 0, ratio, EventType::kListen, 1, 0.5f};
}

TEST(GenerateTruth, FindsTheLastDayWhenTheNewestEventComesFromTheLastUser) {
  GenerateOptions options = small_options({});
  TruthKeeper keeper(options);
  keeper.add_user(1, std::vector{listen(0, 100), listen(50'000, 0), listen(100'000, 100)});
  keeper.add_user(2, std::vector{listen(130'000, 0), listen(140'000, 100)});
  const Truth truth = keeper.finish();
  EXPECT_EQ(truth.from, 140'001 - 86'400);
  EXPECT_EQ(truth.to, 140'000);
  EXPECT_EQ(truth.n, 3);  // 100,000 and both of user 2
  EXPECT_EQ(truth.n_pos, 2);
  EXPECT_EQ(keeper.last_day().front().timestamp, 100'000u);
}

TEST(GenerateTruth, ScoresAreUndefinedWithoutBothClasses) {
  GenerateOptions options = small_options({});
  TruthKeeper keeper(options);
  keeper.add_user(1, std::vector{listen(10, 100)});
  const Truth truth = keeper.finish();
  EXPECT_FALSE(truth.oracle.auc.has_value());
  EXPECT_FALSE(truth.oracle.ne.has_value());
  const Path path = temporary_folder() / "truth.json";
  write_truth_json(path, options, truth);
  EXPECT_TRUE(Json::parse(read_file(path))["oracle"]["auc"].is_null());
}

}  // namespace
}  // namespace hstu
