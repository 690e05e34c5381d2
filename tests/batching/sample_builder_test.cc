#include "hstu/batching/sample_builder.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include <gtest/gtest.h>

#include "batching/small_data.h"

namespace hstu {
namespace {

using small::Data;
using small::expect_error;
using Ids = std::vector<std::int64_t>;

DataOptions full_options(HistoryStrategy strategy = HistoryStrategy::interleaved) {
  DataOptions options;
  options.history_length = 12;
  options.strategy = strategy;
  options.scan_limit = 25;
  options.attributes = {"album_id", "artist_id"};
  options.contextual = {{"user", {"user"}, 0, false},
                        {"user_x_artist", {"user", "artist_id"}, 1000, true},
                        {"user_x_hour_x_organic", {"user", "hour", "is_organic"}, 1000, true}};
  return options;
}

Ids every_position(const Data& data) {
  Ids positions(static_cast<std::size_t>(data.size()));
  std::iota(positions.begin(), positions.end(), 0);
  return positions;
}

void expect_well_formed(const Samples& samples, const Data& data, const SampleBuilder& builder) {
  const auto count = static_cast<std::size_t>(samples.count);
  ASSERT_EQ(samples.history_offsets.size(), count + 1);
  EXPECT_EQ(samples.history_offsets.front(), 0);
  EXPECT_EQ(samples.history_offsets.back(), static_cast<std::int64_t>(samples.history_item.size()));
  EXPECT_EQ(samples.history_action.size(), samples.history_item.size());
  EXPECT_EQ(samples.history_time.size(), samples.history_item.size());
  EXPECT_EQ(std::adjacent_find(samples.items.begin(), samples.items.end(), std::greater_equal<>()),
            samples.items.end());
  ASSERT_EQ(samples.attributes.size(), 2u);
  for (std::size_t i = 0; i < samples.items.size(); ++i) {
    const auto item = static_cast<std::size_t>(samples.items[i]);
    EXPECT_EQ(samples.attributes[0][i], item < data.album.size() ? data.album[item] : 0);
    EXPECT_EQ(samples.attributes[1][i], item < data.artist.size() ? data.artist[item] : 0);
  }
  std::vector<bool> used(samples.items.size());
  for (const std::int32_t i : samples.history_item) used[static_cast<std::size_t>(i)] = true;
  for (std::size_t b = 0; b < count; ++b) {
    const small::Event& anchor = data.at(samples.position[b]);
    const std::int32_t candidate = samples.candidate_item[b];
    used[static_cast<std::size_t>(candidate)] = true;
    EXPECT_EQ(samples.items[static_cast<std::size_t>(candidate)], anchor.item);
    EXPECT_EQ(samples.candidate_time[b], anchor.time);
    EXPECT_EQ(samples.user[b], anchor.user);
    EXPECT_EQ(samples.label[b], (anchor.action & small::kGood) != 0 ? 1.0f : 0.0f);
    EXPECT_EQ(samples.context[0][b], anchor.user);
    const auto begin = samples.history_offsets[b], end = samples.history_offsets[b + 1];
    EXPECT_LE(begin, end);
    EXPECT_LE(end - begin, builder.longest_history());
  }
  EXPECT_TRUE(std::all_of(used.begin(), used.end(), [](bool u) { return u; }));  // every item is used
}

// A batch is divided into parts by the bound: a bound that is too small would violate the limit on tokens.
TEST(SampleBuilder, BoundsTheTokensOfASample) {
  const Data data = small::write(small::random_events(3, {.users = 10}));
  const Dataset dataset(data.folder);
  for (const auto strategy : {HistoryStrategy::interleaved, HistoryStrategy::last_n}) {
    const SampleBuilder builder(dataset, full_options(strategy));
    const Samples samples = builder.build(every_position(data));
    for (std::size_t b = 0; b < samples.position.size(); ++b) {
      const std::int64_t tokens = 3 + samples.history_offsets[b + 1] - samples.history_offsets[b] + 1;
      EXPECT_LE(tokens, builder.most_tokens(samples.position[b]));
      EXPECT_LE(builder.most_tokens(samples.position[b]), builder.longest_sequence());
    }
  }
}

TEST(SampleBuilder, TakesEverythingFromTheRightEvent) {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    const Data data = small::write(small::random_events(seed));
    const Dataset dataset(data.folder);
    for (const auto strategy : {HistoryStrategy::interleaved, HistoryStrategy::last_n}) {
      const SampleBuilder builder(dataset, full_options(strategy));
      Ids positions = every_position(data);
      std::reverse(positions.begin(), positions.end());
      const Samples samples = builder.build(positions);
      EXPECT_EQ(samples.position, positions);
      EXPECT_GT(samples.history_item.size(), 100u);
      expect_well_formed(samples, data, builder);
    }
  }
}

// Items are renamed to positions, so that a sample shows which events it contains.
TEST(SampleBuilder, NoEventAtOrAfterTheAnchorReachesItsHistory) {
  std::int64_t tokens = 0;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    std::vector<small::Event> events = small::random_events(seed, {.seconds = 30});  // many equal times
    std::stable_sort(events.begin(), events.end(), [](const auto& a, const auto& b) {
      return std::tie(a.user, a.time) < std::tie(b.user, b.time);
    });
    for (std::size_t p = 0; p < events.size(); ++p) events[p].item = static_cast<std::int64_t>(p);
    const Data data = small::write(events);
    const Dataset dataset(data.folder);
    DataOptions options = full_options(seed % 2 ? HistoryStrategy::interleaved : HistoryStrategy::last_n);
    if (seed > 5) options.max_sequence = 9;
    const Samples samples = SampleBuilder(dataset, options).build(every_position(data));
    for (std::int64_t anchor = 0; anchor < data.size(); ++anchor) {
      const auto b = static_cast<std::size_t>(anchor);
      for (std::int64_t t = samples.history_offsets[b]; t < samples.history_offsets[b + 1]; ++t) {
        const auto token = static_cast<std::size_t>(t);
        const std::int64_t source = samples.items[static_cast<std::size_t>(samples.history_item[token])];
        ASSERT_LT(source, anchor);
        ASSERT_GE(source, std::max(data.user_start(anchor), anchor - options.scan_limit));
        ASSERT_EQ(samples.history_time[token], data.at(source).time);
        ASSERT_EQ(samples.history_action[token], data.at(source).action & ~kRankableBit);
        ++tokens;
      }
    }
  }
  EXPECT_GT(tokens, 10'000);
}

TEST(SampleBuilder, LeavesOutTheSecondOfTheAnchorWhereAsked) {
  const Data data = small::write(small::random_events(5, {.seconds = 30}));
  const Dataset dataset(data.folder);
  DataOptions options = full_options(HistoryStrategy::last_n);
  const Samples all = SampleBuilder(dataset, options).build(every_position(data));
  options.same_second = false;
  const Samples before = SampleBuilder(dataset, options).build(every_position(data));
  const auto of_own_second = [](const Samples& samples) {
    std::int64_t count = 0;
    for (std::size_t b = 0; b < samples.position.size(); ++b)
      for (std::int64_t t = samples.history_offsets[b]; t < samples.history_offsets[b + 1]; ++t)
        count += samples.history_time[static_cast<std::size_t>(t)] == samples.candidate_time[b] ? 1 : 0;
    return count;
  };
  EXPECT_GT(of_own_second(all), 100);
  EXPECT_EQ(of_own_second(before), 0);
  EXPECT_EQ(before.position, all.position);
  options.predicts_next_events = true;
  EXPECT_THROW(SampleBuilder(dataset, options), UsageError);
}

TEST(SampleBuilder, WhatComesLaterChangesNothingButTheLabel) {
  const std::vector<small::Event> events = small::random_events(4);
  const Data data = small::write(events);
  const Dataset dataset(data.folder);
  RandomStream random{.key = 9, .index = 0};
  for (int round = 0; round < 20; ++round) {
    const auto anchor = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(data.size())));
    std::vector<small::Event> altered = data.events;
    for (std::size_t p = static_cast<std::size_t>(anchor); p < altered.size(); ++p) {
      altered[p].action = static_cast<std::uint8_t>(altered[p].action ^ small::kGood ^ small::kBad);
      if (static_cast<std::int64_t>(p) > anchor) altered[p].item += 5;
      if (static_cast<std::int64_t>(p) > anchor) altered[p].organic ^= 1;
    }
    const Data future = small::write(altered, "altered");
    const Dataset altered_dataset(future.folder);
    const Ids one{anchor};
    const Samples before = SampleBuilder(dataset, full_options()).build(one);
    const Samples after = SampleBuilder(altered_dataset, full_options()).build(one);
    EXPECT_EQ(before.items, after.items);
    EXPECT_EQ(before.history_item, after.history_item);
    EXPECT_EQ(before.history_action, after.history_action);
    EXPECT_EQ(before.history_time, after.history_time);
    EXPECT_EQ(before.attributes, after.attributes);
    EXPECT_EQ(before.context, after.context);
  }
}

TEST(SampleBuilder, HistoriesAreInTheOrderOfTime) {
  // Written in the order of the log, which is not the order of time.
  const Data data = small::write({{.user = 1, .time = 30, .item = 3, .action = 0x81},
                                  {.user = 1, .time = 10, .item = 1, .action = 2},
                                  {.user = 2, .time = 15, .item = 9, .action = 0x81},
                                  {.user = 1, .time = 20, .item = 2, .action = 4},
                                  {.user = 1, .time = 40, .item = 4, .action = 0x81}});
  const Dataset dataset(data.folder);
  const Samples samples = SampleBuilder(dataset, {}).build(Ids{3});
  EXPECT_EQ(samples.history_time, (Ids{10, 20, 30}));
  EXPECT_EQ(samples.items, (Ids{1, 2, 3, 4}));
  EXPECT_EQ(samples.history_action, (std::vector<std::uint8_t>{2, 4, 1}));
}

TEST(SampleBuilder, ASampleDoesNotDependOnItsBatch) {
  const Data data = small::write(small::random_events(7));
  const Dataset dataset(data.folder);
  const SampleBuilder builder(dataset, full_options());
  const Samples all = builder.build(every_position(data));
  for (std::int64_t p = 0; p < data.size(); p += 11) {
    const auto b = static_cast<std::size_t>(p);
    const Samples one = builder.build(Ids{p});
    Ids from_all, from_one;
    for (std::int64_t t = all.history_offsets[b]; t < all.history_offsets[b + 1]; ++t) {
      from_all.push_back(all.items[static_cast<std::size_t>(all.history_item[static_cast<std::size_t>(t)])]);
    }
    for (const std::int32_t i : one.history_item) from_one.push_back(one.items[static_cast<std::size_t>(i)]);
    EXPECT_EQ(from_all, from_one);
    for (std::size_t f = 0; f < 3; ++f) EXPECT_EQ(all.context[f][b], one.context[f][0]);
  }
}

TEST(SampleBuilder, ReusedBuffersHoldWhatFreshOnesWould) {
  const Data data = small::write(small::random_events(7));
  const Dataset dataset(data.folder);
  const SampleBuilder builder(dataset, full_options());
  SampleScratch scratch = builder.scratch();
  Samples reused;
  RandomStream random{.key = 3, .index = 0};
  for (int round = 0; round < 50; ++round) {
    Ids positions;  // of few users and many, ascending and not, some twice
    const auto first = random.below(static_cast<std::uint64_t>(data.size()));
    const auto reach = 1 + random.below(static_cast<std::uint64_t>(data.size()) - first);
    for (std::uint64_t i = random.below(30); i > 0; --i) {
      positions.push_back(static_cast<std::int64_t>(first + random.below(reach)));
    }
    if (round % 2 == 0) std::sort(positions.begin(), positions.end());
    builder.build(positions, reused, scratch);
    const Samples fresh = builder.build(positions);
    EXPECT_EQ(reused.count, fresh.count);
    EXPECT_EQ(reused.position, fresh.position);
    EXPECT_EQ(reused.history_offsets, fresh.history_offsets);
    EXPECT_EQ(reused.history_item, fresh.history_item);
    EXPECT_EQ(reused.history_action, fresh.history_action);
    EXPECT_EQ(reused.history_time, fresh.history_time);
    EXPECT_EQ(reused.candidate_item, fresh.candidate_item);
    EXPECT_EQ(reused.items, fresh.items);
    EXPECT_EQ(reused.attributes, fresh.attributes);
    EXPECT_EQ(reused.context, fresh.context);
    EXPECT_EQ(reused.label, fresh.label);
  }
}

TEST(SampleBuilder, MaxSequenceKeepsTheLatestEvents) {
  const Data data = small::write(small::random_events(8, {.users = 2, .longest = 200}));
  const Dataset dataset(data.folder);
  DataOptions options = full_options(HistoryStrategy::last_n);
  const SampleBuilder whole(dataset, options);
  EXPECT_EQ(whole.longest_sequence(), 12 + 3 + 1);
  options.max_sequence = 3 + 5 + 1;
  const SampleBuilder cut(dataset, options);
  EXPECT_EQ(cut.longest_sequence(), options.max_sequence);
  const Ids last{data.size() - 1};
  const Samples long_history = whole.build(last), short_history = cut.build(last);
  ASSERT_EQ(long_history.history_time.size(), 12u);
  EXPECT_EQ(short_history.history_time,
            Ids(long_history.history_time.end() - 5, long_history.history_time.end()));
}

TEST(SampleBuilder, AnEmptyBatchAndAnEmptyHistoryAreFine) {
  const Data data = small::write({{.user = 1, .time = 1, .item = 8, .action = 0x81}});
  const Dataset dataset(data.folder);
  const SampleBuilder builder(dataset, {});
  EXPECT_EQ(builder.build(Ids{}).history_offsets, Ids{0});
  const Samples samples = builder.build(Ids{0});
  EXPECT_EQ(samples.history_offsets, (Ids{0, 0}));
  EXPECT_EQ(samples.items, Ids{8});
}

TEST(SampleBuilder, RefusesNamesTheDatasetDoesNotHave) {
  const Dataset dataset(small::write({{.user = 1, .time = 1, .item = 8, .action = 0x81}}).folder);
  DataOptions options;
  options.attributes = {"albumid"};
  expect_error<UsageError>([&] { SampleBuilder(dataset, options); }, {"albumid", "album_id"});
}

// Draws of negatives from the targets of a batch, by their items: of `part`, where the batch has all anchors.
std::vector<Ids> drawn_items(const SampleBuilder& builder, const Ids& part, const Ids& batch,
                             std::size_t own) {
  const Samples samples = builder.build(part, batch);
  std::vector<Ids> of_tokens(samples.drawn_item.size() / own);
  for (std::size_t i = 0; i < samples.drawn_item.size(); ++i)
    of_tokens[i / own].push_back(samples.items[static_cast<std::size_t>(samples.drawn_item[i])]);
  return of_tokens;
}

TEST(SampleBuilder, DrawsEvenlyFromTheTargetsOfTheWholeBatch) {
  const Data data = small::write(small::random_events(9, {.users = 16, .longest = 9, .items = 30}));
  const Dataset dataset(data.folder);
  Ids catalogue(30), anchors;
  std::iota(catalogue.begin(), catalogue.end(), 0);
  for (std::int64_t p = 0; p < data.size(); ++p)
    if (p + 1 == data.size() || data.user_start(p + 1) == p + 1) anchors.push_back(p);
  constexpr std::size_t kDrawn = 400;
  DataOptions options;
  options.history_length = 6;
  options.strategy = HistoryStrategy::last_n;
  options.predicts_next_events = true;
  options.catalogue = {.own = kDrawn, .of_batch = true};
  const SampleBuilder builder(dataset, options, nullptr, catalogue);

  const Samples samples = builder.build(anchors);
  std::map<std::int64_t, double> times;
  for (std::size_t b = 0; b < anchors.size(); ++b) {
    const auto begin = static_cast<std::size_t>(samples.history_offsets[b]);
    const auto end = static_cast<std::size_t>(samples.history_offsets[b + 1]);
    if (begin == end) continue;  // asks for nothing
    for (std::size_t h = begin + 1; h < end; ++h)
      times[samples.items[static_cast<std::size_t>(samples.history_item[h])]] = 0;
    times[data.at(anchors[b]).item] = 0;
  }
  const std::vector<Ids> whole = drawn_items(builder, anchors, {}, kDrawn);
  ASSERT_EQ(static_cast<std::int64_t>(whole.size()), samples.history_offsets.back());
  for (const Ids& of_token : whole)
    for (const std::int64_t item : of_token) {
      ASSERT_TRUE(times.contains(item)) << item << " is no target";
      ++times[item];
    }
  const double expected = static_cast<double>(kDrawn * whole.size()) / static_cast<double>(times.size());
  ASSERT_LT(times.size(), 30u);
  for (const auto& [item, n] : times) EXPECT_NEAR(n, expected, 6 * std::sqrt(expected)) << item;

  // A part of the batch, as a rank has it, draws what the batch draws there.
  const Ids part(anchors.end() - 5, anchors.end());
  const std::vector<Ids> of_part = drawn_items(builder, part, anchors, kDrawn);
  ASSERT_FALSE(of_part.empty());
  EXPECT_EQ(of_part, std::vector<Ids>(whole.end() - std::ssize(of_part), whole.end()));
  EXPECT_NE(drawn_items(builder, part, {}, kDrawn), of_part);
}

}  // namespace
}  // namespace hstu
