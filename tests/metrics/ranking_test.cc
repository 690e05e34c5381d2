#include "hstu/metrics/ranking.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "hstu/base/error.h"
#include "hstu/base/files.h"
#include "hstu/base/random.h"
#include "hstu/metrics/auc.h"

namespace hstu {
namespace {

using Labels = std::vector<std::uint8_t>;
using Scores = std::vector<float>;
using Groups = std::vector<std::int64_t>;

struct DrawnGroups {
  Scores scores;
  Labels labels;
  Groups groups;
};

DrawnGroups draw_groups(std::uint64_t seed, int n) {
  RandomStream random{derive_key(seed, "ranking test")};
  DrawnGroups drawn;
  for (int i = 0; i < n; ++i) {
    const bool positive = random.uniform() < 0.3;
    drawn.scores.push_back(static_cast<float>(0.7 * random.uniform() + (positive ? 0.3 : 0.0)));
    drawn.labels.push_back(positive);
    drawn.groups.push_back(static_cast<std::int64_t>(random.below(9)));
  }
  return drawn;
}

void expect_same_bits(const RankingMetrics& a, const RankingMetrics& b) {
  EXPECT_EQ(measures_of(a), measures_of(b));
}

void expect_same_state(const LifetimeMetrics& a, const LifetimeMetrics& b) {
  EXPECT_EQ(a.sums.state().dump(), b.sums.state().dump());
  EXPECT_TRUE(std::ranges::equal(a.auc.positives(), b.auc.positives()));
  EXPECT_TRUE(std::ranges::equal(a.auc.negatives(), b.auc.negatives()));
}

TEST(RankingMetrics, EqualScikitLearn) {
  const Json cases = Json::parse(read_file(Path(HSTU_GOLDEN_DIR) / "metrics.json"));
  ASSERT_EQ(cases.size(), 6u);
  for (const Json& one : cases) {
    SCOPED_TRACE(one["name"].get<std::string>());
    const auto probabilities = one["probabilities"].get<Scores>();
    const auto labels = one["labels"].get<Labels>();
    const Json found =
        to_json(measures_of(ranking_metrics(probabilities, labels, one["groups"].get<Groups>())));
    const Json& expected = one["expected"];
    for (const char* key : {"n", "n_pos", "n_groups"}) EXPECT_EQ(found[key], expected[key]) << key;
    for (const char* key : {"auc", "ne", "accuracy", "gauc", "gauc_mean", "log_loss", "calibration"}) {
      const double value = expected[key];
      EXPECT_NEAR(found[key].get<double>(), value, 1e-12 * std::max(1.0, value)) << key;
    }
    LifetimeMetrics lifetime;
    for (std::size_t i = 0; i < labels.size(); ++i) lifetime.add(probabilities[i], labels[i] == 1);
    EXPECT_NEAR(lifetime.auc.value().value(), expected["binned_auc"].get<double>(), 1e-12);
    EXPECT_EQ(Json(lifetime.sums.ne()), found["ne"]);
  }
}

TEST(RankingMetrics, DoNotDependOnTheOrderOfSamples) {
  const DrawnGroups d = draw_groups(1, 500);
  const DrawnGroups reversed{{d.scores.rbegin(), d.scores.rend()},
                             {d.labels.rbegin(), d.labels.rend()},
                             {d.groups.rbegin(), d.groups.rend()}};
  expect_same_bits(ranking_metrics(d.scores, d.labels, d.groups),
                   ranking_metrics(reversed.scores, reversed.labels, reversed.groups));
}

TEST(RankingMetrics, ComeBackFromJsonToTheBit) {
  const DrawnGroups d = draw_groups(2, 300);
  const RankingMetrics one_class = ranking_metrics(Scores{0.2f}, Labels{0}, Groups{1});
  for (const RankingMetrics& metrics : {ranking_metrics(d.scores, d.labels, d.groups), one_class}) {
    const Measures measures = measures_of(metrics);
    EXPECT_EQ(measures_from_json(Json::parse(to_json(measures).dump())), measures);
    // Readers of plain JSON sort the names.
    const auto sorted = nlohmann::json::parse(to_json(measures).dump());
    EXPECT_EQ(measures_from_json(Json(sorted)).in_order_of(kRankingMetrics), measures);
  }
}

TEST(RankingMetrics, OneClassHasNoAucAndNoNe) {
  const RankingMetrics only_negatives = ranking_metrics(Scores{0.2f, 0.4f}, Labels{0, 0}, Groups{1, 1});
  EXPECT_EQ(to_json(measures_of(only_negatives)).dump(),
            R"({"auc":null,"ne":null,"accuracy":1.0,"gauc":null,"gauc_mean":null,"log_loss":)" +
                Json(only_negatives.log_loss).dump() +
                R"(,"calibration":null,"n":2,"n_pos":0,"n_groups":0})");
  const RankingMetrics only_positives = ranking_metrics(Scores{0.2f, 0.4f}, Labels{1, 1}, Groups{1, 1});
  EXPECT_FALSE(only_positives.ne.has_value());
  EXPECT_NEAR(only_positives.calibration.value(), 0.3, 1e-7);
  EXPECT_FALSE(ranking_metrics({}, {}, {}).accuracy.has_value());
}

TEST(RankingMetrics, AlwaysPredictingTheMeanHasNeOne) {
  EXPECT_NEAR(ranking_metrics(Scores(4, 0.25f), Labels{1, 0, 0, 0}, Groups(4, 0)).ne.value(), 1.0, 1e-15);
}

TEST(RankingMetrics, RefuseWhatIsNoProbability) {
  for (const float bad : {NAN, -0.1f, 1.5f}) {
    EXPECT_THROW(ranking_metrics(Scores{0.5f, bad}, Labels{0, 1}, Groups{0, 0}), Error) << bad;
    EXPECT_THROW(LifetimeMetrics().add(bad, true), Error) << bad;
    EXPECT_THROW(BinnedAuc().add(bad, true), Error) << bad;
  }
}

// The trap: metrics of parts added up or averaged. Samples are merged, then measured.
TEST(RankingSamples, MergedPartsEqualTheWhole) {
  const DrawnGroups d = draw_groups(2, 400);
  RankingSamples whole;
  std::vector<RankingSamples> parts(3);
  double mean_of_parts = 0;
  for (std::size_t i = 0; i < d.scores.size(); ++i) {
    whole.add(d.scores[i], d.labels[i] == 1, d.groups[i]);
    parts[i % 7 == 0 ? 0 : i % 2 + 1].add(d.scores[i], d.labels[i] == 1, d.groups[i]);
  }
  RankingSamples merged;
  for (const RankingSamples& part : parts) {
    merged.merge(part);
    mean_of_parts += part.metrics().auc.value() / 3;
  }
  expect_same_bits(merged.metrics(), whole.metrics());
  expect_same_bits(whole.metrics(), ranking_metrics(d.scores, d.labels, d.groups));
  EXPECT_NE(merged.metrics().auc, mean_of_parts);
}

TEST(RankingSamples, AWindowKeepsTheLastSamples) {
  const DrawnGroups d = draw_groups(3, 257);
  RankingSamples window(50);
  for (std::size_t i = 0; i < d.scores.size(); ++i) {
    window.add(d.scores[i], d.labels[i] == 1, d.groups[i]);
    const std::size_t kept = std::min<std::size_t>(i + 1, 50), first = i + 1 - kept;
    ASSERT_EQ(window.size(), static_cast<std::int64_t>(kept));
    ASSERT_EQ(window.probabilities().front(), d.scores[first]);
    ASSERT_EQ(window.groups().back(), d.groups[i]);
  }
  expect_same_bits(window.metrics(),
                   ranking_metrics(std::span(d.scores).last(50), std::span(d.labels).last(50),
                                   std::span(d.groups).last(50)));
  RankingSamples other(50);
  for (int i = 0; i < 20; ++i) other.add(0.5f, true, 1);
  window.merge(other);
  EXPECT_EQ(window.size(), 50);
  EXPECT_EQ(window.probabilities()[0], d.scores[257 - 30]);
  EXPECT_EQ(window.probabilities()[49], 0.5f);
  window.clear();
  EXPECT_EQ(window.metrics().n, 0);
}

TEST(LifetimeMetrics, MergedPartsEqualTheWhole) {
  const DrawnGroups d = draw_groups(4, 1000);
  LifetimeMetrics whole, left, right;
  for (std::size_t i = 0; i < d.scores.size(); ++i) {
    whole.add(d.scores[i], d.labels[i] == 1);
    (i % 3 == 0 ? left : right).add(d.scores[i], d.labels[i] == 1);
  }
  const double mean_of_parts = (left.auc.value().value() + right.auc.value().value()) / 2;
  right.merge(left);
  expect_same_state(right, whole);
  EXPECT_NE(right.auc.value(), mean_of_parts);
  EXPECT_NEAR(whole.auc.value().value(), auc(d.scores, d.labels).value(), 1e-4);
}

TEST(LifetimeMetrics, GoOnFromTheirState) {
  const DrawnGroups d = draw_groups(5, 300);
  LifetimeMetrics whole, first;
  for (std::size_t i = 0; i < d.scores.size(); ++i) whole.add(d.scores[i], d.labels[i] == 1);
  for (std::size_t i = 0; i < 100; ++i) first.add(d.scores[i], d.labels[i] == 1);
  const auto copy = [](std::span<const std::uint64_t> bins) { return std::vector(bins.begin(), bins.end()); };
  LifetimeMetrics restored{PointwiseSums::from_state(Json::parse(first.sums.state().dump())),
                           BinnedAuc(copy(first.auc.positives()), copy(first.auc.negatives()))};
  for (std::size_t i = 100; i < d.scores.size(); ++i) restored.add(d.scores[i], d.labels[i] == 1);
  expect_same_state(restored, whole);
}

TEST(BinnedAuc, ProbabilityOneIsInTheLastBinAndABinIsATie) {
  BinnedAuc binned(10);
  binned.add(1.0f, true);
  binned.add(0.95f, false);
  EXPECT_EQ(binned.value(), 0.5);
  EXPECT_EQ(binned.positives()[9], 1u);
  binned.add(0.0f, false);
  EXPECT_EQ(binned.value(), 0.75);
}

TEST(BinnedAuc, IsEmptyWhenAClassIsMissing) {
  BinnedAuc binned;
  EXPECT_FALSE(binned.value().has_value());
  binned.add(0.5f, true);
  EXPECT_FALSE(binned.value().has_value());
}

// The trap: positives * negatives past 64 bits.
TEST(BinnedAuc, CountsBeyondSixtyFourBits) {
  const std::uint64_t many = std::uint64_t{1} << 40;
  const BinnedAuc binned({0, many, many}, {many, many, 0});
  EXPECT_DOUBLE_EQ(binned.value().value(), (0.5 + 1 + 1 + 1) / 4);
}

}  // namespace
}  // namespace hstu
