#include "hstu/synthetic/generate_yambda.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>

#include <gmock/gmock.h>

#include "hstu/base/error.h"
#include "hstu/synthetic/generate_signal.h"
#include "synthetic/generated_events.h"

namespace hstu {
namespace {

TEST(GenerateYambda, WritesThePublicSchema) {
  const auto expected =
      arrow::schema({arrow::field("uid", arrow::uint32()), arrow::field("timestamp", arrow::uint32()),
                     arrow::field("item_id", arrow::uint32()), arrow::field("is_organic", arrow::uint8()),
                     arrow::field("played_ratio_pct", arrow::uint16()),
                     arrow::field("track_length_seconds", arrow::uint32()),
                     arrow::field("event_type", arrow::dictionary(arrow::int32(), arrow::utf8()))});
  EXPECT_TRUE(shared_log().events.table->schema()->Equals(*expected, /*check_metadata=*/false))
      << shared_log().events.table->schema()->ToString();
}

TEST(GenerateYambda, OrdersEventsByUserTimeAndType) {
  const std::map<std::string, int> rank{
      {"listen", 0}, {"dislike", 1}, {"like", 2}, {"undislike", 3}, {"unlike", 4}};
  const Events& events = shared_log().events;
  std::int64_t ties_of_types = 0;
  for (std::size_t i = 1; i < events.size(); ++i) {
    const auto key = [&](std::size_t k) {
      return std::tuple(events.uid[k], events.timestamp[k], rank.at(events.type[k]));
    };
    ASSERT_LE(key(i - 1), key(i)) << "row " << i;
    ties_of_types += events.uid[i] == events.uid[i - 1] && events.timestamp[i] == events.timestamp[i - 1] &&
                     events.type[i] != events.type[i - 1];
  }
  EXPECT_GT(ties_of_types, 50);  // the tie rule was at work
}

TEST(GenerateYambda, KeepsTimeQuantisedAndWithinItsDays) {
  const Events& events = shared_log().events;
  for (const std::uint32_t timestamp : events.timestamp) {
    ASSERT_EQ(timestamp % 5, 0u);
    ASSERT_LT(timestamp, 12 * kSecondsPerDay);
  }
}

TEST(GenerateYambda, LeavesPlayedRatioAndLengthEmptyForOpinionsOnly) {
  const Events& events = shared_log().events;
  for (const char* name : {"played_ratio_pct", "track_length_seconds"}) {
    const auto column = events.table->GetColumnByName(name)->chunk(0);
    for (std::size_t i = 0; i < events.size(); ++i) {
      ASSERT_EQ(column->IsValid(static_cast<std::int64_t>(i)), events.is_listen(i)) << name << " row " << i;
    }
  }
}

TEST(GenerateYambda, NeverRepeatsAListenOfOneUserTimeAndItem) {
  const Events& events = shared_log().events;
  std::set<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>> seen;
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (!events.is_listen(i)) continue;
    ASSERT_TRUE(seen.emplace(events.uid[i], events.timestamp[i], events.item_id[i]).second) << "row " << i;
  }
}

TEST(GenerateYambda, MixesEventTypesLikeThePublicSet) {
  const EventMix& mix = shared_log().truth.counts;
  const auto share = [&](std::int64_t n) { return static_cast<double>(n) / static_cast<double>(mix.events); };
  EXPECT_NEAR(share(mix.listen_plus), 0.613, 0.04);
  EXPECT_NEAR(share(mix.skip), 0.359, 0.04);
  EXPECT_NEAR(share(mix.like), 0.019, 0.007);
  EXPECT_NEAR(share(mix.dislike + mix.unlike + mix.undislike), 0.010, 0.005);
  EXPECT_GT(mix.unlike, 0);
  EXPECT_GT(mix.undislike, 0);
}

TEST(GenerateYambda, GivesUsersHeavyTailedLengths) {
  const Events& events = shared_log().events;
  std::vector<double> length(400, 0);
  for (const std::uint32_t uid : events.uid) ++length.at(uid - 1);
  std::sort(length.begin(), length.end());
  const double mean = static_cast<double>(events.size()) / 400;
  EXPECT_NEAR(mean, 16 * 12, 35);
  EXPECT_NEAR(length[200] / mean, 0.566, 0.12);  // median of the public set: 2,695 of 4,763
  EXPECT_GT(length.back(), 4 * mean);
  EXPECT_LE(length.back(), 5.83 * 16 * 12);
  EXPECT_GE(length.front(), 1);
}

TEST(GenerateYambda, MakesFewItemsPopular) {
  const Events& events = shared_log().events;
  std::vector<double> plays(1500, 0);
  for (const std::uint32_t item : events.item_id) ++plays.at(item - 1);
  std::sort(plays.rbegin(), plays.rend());
  const auto share_of_top = [&](std::ptrdiff_t n) {
    double sum = 0;
    std::for_each(plays.begin(), plays.begin() + n, [&](double p) { sum += p; });
    return sum / static_cast<double>(events.size());
  };
  EXPECT_GT(share_of_top(15), 0.06);   // 1 % of the items, six times its share
  EXPECT_GT(share_of_top(150), 0.35);  // 10 %
  EXPECT_LT(share_of_top(150), 0.90);
}

TEST(GenerateYambda, FollowsTheHoursOfTheDay) {
  std::array<double, 24> hours{};
  for (const std::uint32_t timestamp : shared_log().events.timestamp) ++hours[timestamp / 3600 % 24];
  EXPECT_GT(*std::max_element(hours.begin(), hours.end()), 3 * *std::min_element(hours.begin(), hours.end()));
  EXPECT_GT(hours[19], 3 * hours[4]);
}

TEST(GenerateYambda, MapsEveryItemAndSomeTwice) {
  for (const auto& [file, column] : {std::pair("artist_item_mapping.parquet", "artist_id"),
                                     std::pair("album_item_mapping.parquet", "album_id")}) {
    const auto table = read_table(shared_log().folder / file);
    const auto items = values<arrow::UInt32Type>(*table, "item_id");
    const auto targets = values<arrow::UInt32Type>(*table, column);
    EXPECT_TRUE(std::is_sorted(items.begin(), items.end())) << file;
    const std::set<std::uint32_t> distinct(items.begin(), items.end());
    EXPECT_EQ(distinct.size(), 1500u);
    EXPECT_EQ(*distinct.begin(), 1u);  // 0 means unmapped
    EXPECT_EQ(*distinct.rbegin(), 1500u);
    EXPECT_NEAR(static_cast<double>(items.size()), 1500 * 1.03, 25);
    EXPECT_GT(*std::min_element(targets.begin(), targets.end()), 0u);
  }
}

TEST(GenerateYambda, ListsTheArtistOfTheSignalLast) {
  GenerateOptions options = small_options({});
  const Catalogue catalogue(options);
  const auto table = read_table(shared_log().folder / "artist_item_mapping.parquet");
  const auto items = values<arrow::UInt32Type>(*table, "item_id");
  const auto targets = values<arrow::UInt32Type>(*table, "artist_id");
  std::map<std::uint32_t, std::uint32_t> last;
  for (std::size_t i = 0; i < items.size(); ++i) last[items[i]] = targets[i];
  for (const CatalogueArtist& artist : catalogue.artists()) {
    for (std::uint32_t i = artist.first_item; i < (&artist + 1)->first_item; ++i) {
      ASSERT_EQ(last.at(catalogue.items()[i].id), artist.id);
    }
  }
}

TEST(GenerateYambda, WritesTheSameBytesWhateverTheThreads) {
  const Path one = fresh_folder("one_thread"), two = fresh_folder("two_threads");
  GenerateOptions options = small_options(one, 7);
  options.events_per_user_day = 50;
  options.users = 2500;  // more than one row group
  options.threads = 1;
  generate_yambda(options);
  options.output = two;
  options.threads = 2;
  generate_yambda(options);
  for (const char* file : {"multi_event.parquet", "artist_item_mapping.parquet", "album_item_mapping.parquet",
                           "truth.json", "truth_last_day.parquet"}) {
    EXPECT_EQ(file_checksum(one / file), file_checksum(two / file)) << file;
  }
  std::filesystem::remove_all(one);
  std::filesystem::remove_all(two);
}

TEST(GenerateYambda, WritesOtherEventsForAnotherSeed) {
  const Path folder = fresh_folder("another_seed");
  generate_yambda(small_options(folder, 2));
  for (const char* file : {"multi_event.parquet", "artist_item_mapping.parquet", "truth_last_day.parquet"}) {
    EXPECT_NE(file_checksum(folder / file), file_checksum(shared_log().folder / file)) << file;
  }
  std::filesystem::remove_all(folder);
}

TEST(GenerateYambda, TouchesNothingWhenTheOutputExists) {
  const Path folder = fresh_folder("exists");
  std::filesystem::create_directories(folder);
  write_file(folder / "precious", "text");
  EXPECT_THROW(generate_yambda(small_options(folder)), UsageError);
  EXPECT_EQ(read_file(folder / "precious"), "text");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
  std::filesystem::remove_all(folder);
}

TEST(GenerateYambda, RefusesValuesOutOfRangeByName) {
  using testing::AllOf;
  using testing::HasSubstr;
  const auto message = [](auto change) {
    GenerateOptions options = small_options(fresh_folder("refused"));
    change(options);
    try {
      generate_yambda(options);
    } catch (const UsageError& error) {
      EXPECT_FALSE(std::filesystem::exists(options.output));
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_THAT(message([](GenerateOptions& o) { o.users = 0; }),
              AllOf(HasSubstr("--users is 0"), HasSubstr("from 1")));
  EXPECT_THAT(message([](GenerateOptions& o) { o.users = -3; }), HasSubstr("--users is -3"));
  EXPECT_THAT(message([](GenerateOptions& o) { o.days = 1; }),
              AllOf(HasSubstr("--days is 1"), HasSubstr("from 2")));
  EXPECT_THAT(message([](GenerateOptions& o) { o.items = 0; }), HasSubstr("--items is 0"));
  EXPECT_THAT(message([](GenerateOptions& o) { o.items = 7; }),
              AllOf(HasSubstr("--items is 7"), HasSubstr("8 genres")));
  EXPECT_THAT(message([](GenerateOptions& o) { o.threads = -1; }), HasSubstr("--threads is -1"));
  EXPECT_THAT(message([](GenerateOptions& o) { o.events_per_user_day = std::nan(""); }),
              HasSubstr("--events-per-user-day is nan"));
}

TEST(GenerateYambda, WorksForOneUserAndOneItemAGenre) {
  const Path folder = fresh_folder("tiny");
  GenerateOptions options = small_options(folder);
  options.users = 1;
  options.days = 2;
  options.items = options.genres;
  options.events_per_user_day = 0.1;
  const Truth truth = generate_yambda(options);
  EXPECT_GE(truth.counts.events, 1);
  EXPECT_EQ(static_cast<std::int64_t>(Events(folder).size()), truth.counts.events);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace hstu
