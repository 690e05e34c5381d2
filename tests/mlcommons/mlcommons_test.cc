#include "hstu/mlcommons/mlcommons.h"

#include <algorithm>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "events/yambda_log.h"
#include "hstu/base/npy.h"
#include "hstu/base/random.h"
#include "hstu/batching/anchors.h"
#include "hstu/batching/sample_builder.h"
#include "hstu/events/builtin_schemas.h"
#include "hstu/prepare/prepare.h"
#include "prepare/verified.h"
#include "temporary_folder.h"

namespace hstu {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kHistoryLength = 30, kMinHistory = 6;

// A log in the order of users and times, with ties, gaps between user ids, and every kind of event.
std::vector<YambdaEvent> random_log() {
  RandomStream random{.key = 3, .index = 0};
  const auto draw = [&](std::uint64_t bound) { return static_cast<std::int64_t>(random.below(bound)); };
  std::vector<YambdaEvent> events;
  for (std::int64_t user = 2; user < 40; user += 1 + draw(3)) {
    std::int64_t time = draw(100'000);
    for (std::int64_t n = 1 + draw(60); n > 0; --n) {
      time += 5 * draw(4'000);
      const char* const types[] = {"listen", "listen", "listen", "like", "dislike", "unlike", "undislike"};
      YambdaEvent event{.uid = user, .timestamp = time, .item_id = draw(50), .event_type = types[draw(7)]};
      if (event.event_type == "listen") event.played_ratio_pct = draw(120);
      if (event.event_type == "listen" && draw(10) == 0) event.played_ratio_pct = std::nullopt;
      event.is_organic = draw(2);
      events.push_back(event);
    }
  }
  return events;
}

// The files of a cache whose min_history is not its history length, as the reference lays them out.
void write_cache(const Path& folder, const std::vector<YambdaEvent>& events) {
  std::filesystem::create_directories(folder);
  const std::map<std::string, std::int64_t> codes{
      {"listen", 0}, {"like", 1}, {"dislike", 2}, {"unlike", 3}, {"undislike", 4}};
  std::vector<std::int64_t> uid, item, time, type, users, full_positions, positions, anchor_times;
  std::vector<float> ratio;
  std::vector<std::int8_t> organic;
  const std::int64_t ids = events.back().uid + 1;
  std::vector<std::int64_t> start(static_cast<std::size_t>(ids), -1), end(static_cast<std::size_t>(ids), -1);
  NpyWriter<bool> plus(folder / "flat_is_listen_plus.npy"), like(folder / "flat_is_like.npy"),
      skip(folder / "flat_is_skip.npy");
  for (const YambdaEvent& event : events) {
    const auto position = static_cast<std::int64_t>(uid.size());
    const auto user = static_cast<std::size_t>(event.uid);
    if (users.empty() || users.back() != event.uid) users.push_back(event.uid), start[user] = position;
    end[user] = position + 1;
    uid.push_back(event.uid);
    item.push_back(event.item_id);
    time.push_back(event.timestamp);
    type.push_back(codes.at(event.event_type));
    ratio.push_back(static_cast<float>(event.played_ratio_pct.value_or(0)));
    organic.push_back(static_cast<std::int8_t>(event.is_organic));
    const bool listen = event.event_type == "listen";
    plus.append(listen && ratio.back() >= 50);
    like.append(event.event_type == "like");
    skip.append(listen && ratio.back() < 50);
    if (listen && position - start[user] >= kHistoryLength) full_positions.push_back(position);
    if (listen && position - start[user] >= kMinHistory) {
      positions.push_back(position);
      anchor_times.push_back(event.timestamp);
    }
  }
  plus.close();
  like.close();
  skip.close();
  write_npy(folder / "flat_uid.npy", uid);
  write_npy(folder / "flat_item_ids.npy", item);
  write_npy(folder / "flat_timestamps.npy", time);
  write_npy(folder / "flat_event_types.npy", type);
  write_npy(folder / "flat_played_ratio.npy", ratio);
  write_npy(folder / "flat_is_organic.npy", organic);
  write_npy(folder / "unique_uids.npy", users);
  write_npy(folder / "user_start.npy", start);
  write_npy(folder / "user_end.npy", end);
  // The reference writes the positions for min_history = history_length first, then those for its own.
  write_npy(folder / "positions_L30.npy", full_positions);
  write_npy(folder / "positions_L30_m6.npy", positions);
  write_npy(folder / "anchor_ts_L30_m6.npy", anchor_times);
  write_file(folder / "store_meta.json",
             fmt::format("{{\"num_users\": {}, \"total_events\": {}}}", users.size(), uid.size()));
  write_file(folder / "_READY", "");
}

class Mlcommons : public testing::Test {
 protected:
  Mlcommons() {
    std::filesystem::create_directories(folder_ / "log");
    write_yambda(folder_ / "log", log_);
    write_cache(cache_, log_);
  }
  Manifest import(const std::string& name = "imported") const {
    return import_mlcommons(cache_, folder_ / "log", folder_ / name);
  }
  std::string error() const {
    try {
      import("refused");
    } catch (const Error& error) {
      EXPECT_FALSE(std::filesystem::exists(folder_ / "refused"));
      return error.what();
    }
    return "accepted";
  }
  const Path folder_ = temporary_folder();
  const Path cache_ = folder_ / "hstu_cache_L30";
  const std::vector<YambdaEvent> log_ = random_log();
};

TEST_F(Mlcommons, TheCacheTrainsOnTheSameBatchesAsTheLog) {
  const Manifest imported = import();
  const Manifest prepared =
      prepare(yambda_schema(folder_ / "log", {.test_days = 0}), folder_ / "log", folder_ / "prepared");
  EXPECT_EQ(imported.counts, prepared.counts);
  EXPECT_EQ(imported.time, prepared.time);
  EXPECT_EQ(imported.attributes, prepared.attributes);

  const Dataset a(folder_ / "imported"), b(folder_ / "prepared");
  DataOptions options;
  options.history_length = 12;
  options.min_history = kMinHistory;
  options.attributes = {"artist_id", "album_id"};
  options.contextual = {{"user_x_organic", {"user", "is_organic", "artist_id"}, 1000, true}};
  const Anchors left = find_anchors(a, options, {.windows = 1}),
                right = find_anchors(b, options, {.windows = 1});
  ASSERT_EQ(left.training.windows(), right.training.windows());
  ASSERT_GT(left.training.size(), 50);
  for (std::int64_t w = 0; w < left.training.windows(); ++w) {
    for (const auto& [l, r] :
         {std::pair(&left.training, &right.training), {&left.evaluation, &right.evaluation}}) {
      EXPECT_TRUE(std::ranges::equal(l->window(w), r->window(w))) << w;
      const Samples x = SampleBuilder(a, options).build(l->window(w));
      const Samples y = SampleBuilder(b, options).build(r->window(w));
      EXPECT_EQ(x.history_offsets, y.history_offsets);
      EXPECT_EQ(x.history_item, y.history_item);
      EXPECT_EQ(x.history_action, y.history_action);
      EXPECT_EQ(x.history_time, y.history_time);
      EXPECT_EQ(x.candidate_item, y.candidate_item);
      EXPECT_EQ(x.candidate_time, y.candidate_time);
      EXPECT_EQ(x.label, y.label);
      EXPECT_EQ(x.user, y.user);
      EXPECT_EQ(x.items, y.items);
      EXPECT_EQ(x.attributes, y.attributes);
      EXPECT_EQ(x.context, y.context);
    }
  }
}

TEST_F(Mlcommons, ColumnsAreLinkedAndVerified) {
  import();
  for (const char* file : {"item.npy", "timestamp.npy", "context_is_organic.npy", "user_ids.npy"}) {
    const Path path = folder_ / "imported" / file;
    ASSERT_TRUE(std::filesystem::is_symlink(path)) << file;
    EXPECT_TRUE(std::filesystem::read_symlink(path).is_absolute());
  }
  const Dataset dataset(folder_ / "imported");
  EXPECT_THAT(wrong(folder_ / "imported"), testing::IsEmpty());
  // The index of the cache's own rule is stored already.
  EXPECT_EQ(verify_anchor_indices(dataset), std::vector<std::string>{"m6_w86400"});
}

TEST_F(Mlcommons, ACacheThatMovedIsNamed) {
  import();
  std::filesystem::rename(cache_, folder_ / "elsewhere");
  try {
    const Dataset dataset(folder_ / "imported");
    FAIL() << "the links of the dataset lead nowhere";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::AllOf(HasSubstr("hstu_cache_L30"), HasSubstr("may have been moved")));
  }
}

TEST_F(Mlcommons, ACacheOfHistoryLengthAloneHasTheAnchorsOfThatLength) {
  std::filesystem::remove(cache_ / "positions_L30_m6.npy");
  std::filesystem::remove(cache_ / "anchor_ts_L30_m6.npy");
  const NpyColumn<std::int64_t> positions(cache_ / "positions_L30.npy");
  std::vector<std::int64_t> times;
  for (const std::int64_t p : positions.values())
    times.push_back(log_[static_cast<std::size_t>(p)].timestamp);
  write_npy(cache_ / "anchor_ts_L30.npy", times);
  import();
  EXPECT_EQ(verify_anchor_indices(Dataset(folder_ / "imported")), std::vector<std::string>{"m30_w86400"});
}

// The reference writes the anchors' times when it first trains from a cache.
TEST_F(Mlcommons, ACacheFromWhichNothingWasTrainedYetIsImported) {
  std::filesystem::remove(cache_ / "positions_L30_m6.npy");
  std::filesystem::remove(cache_ / "anchor_ts_L30_m6.npy");
  EXPECT_THAT(wrong(cache_), testing::IsEmpty());
  testing::internal::CaptureStderr();
  import();
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("has no anchor_ts_L<history length>.npy"));
  EXPECT_EQ(verify_anchor_indices(Dataset(folder_ / "imported")), std::vector<std::string>{"m30_w86400"});
  std::string positions = read_file(cache_ / "positions_L30.npy");
  positions[128] ^= 1;
  write_file(cache_ / "positions_L30.npy", positions);
  EXPECT_THAT(error(), HasSubstr("positions_L30.npy: anchor 0"));
}

TEST_F(Mlcommons, MappingsOfAnotherCatalogueAreRefused) {
  write_parquet(folder_ / "log" / "album_item_mapping.parquet",
                {{"album_id", array<arrow::UInt32Type>({5, 6})},
                 {"item_id", array<arrow::UInt32Type>({1'000, 1'001})}});
  EXPECT_THAT(error(), HasSubstr("album_item_mapping.parquet has no album_id for any item of the cache"));
}

TEST_F(Mlcommons, ACacheOfAnotherMinHistoryVerifiesAsTheReferenceWritesIt) {
  EXPECT_THAT(wrong(cache_), testing::IsEmpty());
}

TEST_F(Mlcommons, FilesThatAreMissingOrOfAnotherShapeAreNamed) {
  const auto moved = [&](const std::string& file) {
    std::filesystem::rename(cache_ / file, folder_ / "away");
    std::string text = error();
    std::filesystem::rename(folder_ / "away", cache_ / file);
    return text;
  };
  EXPECT_THAT(moved("_READY"), HasSubstr("no _READY"));
  EXPECT_THAT(moved("store_meta.json"), HasSubstr("store_meta.json"));
  for (const char* file : {"flat_uid.npy", "flat_played_ratio.npy", "flat_is_skip.npy", "user_end.npy",
                           "unique_uids.npy", "anchor_ts_L30_m6.npy"}) {
    EXPECT_THAT(moved(file), testing::AllOf(HasSubstr(file), HasSubstr("missing")));
  }
  for (const char* file : {"positions_L30_m6.npy", "positions_L30.npy"})
    EXPECT_THAT(moved(file), HasSubstr(fmt::format("{} is missing", file)));
  const std::string whole = read_file(cache_ / "positions_L30.npy");
  write_file(cache_ / "positions_L30.npy", whole.substr(0, whole.size() - 4));
  EXPECT_THAT(error(), HasSubstr("positions_L30.npy"));
  write_file(cache_ / "positions_L30.npy", whole);
  write_npy(cache_ / "flat_event_types.npy", std::vector<std::int64_t>{0});
  EXPECT_THAT(error(), testing::AllOf(HasSubstr("flat_event_types.npy"), HasSubstr("elements, found 1")));
  write_npy(cache_ / "flat_event_types.npy", std::vector<std::int32_t>(log_.size()));
  EXPECT_THAT(error(), testing::AllOf(HasSubstr("flat_event_types.npy"), HasSubstr("<i8"), HasSubstr("<i4")));
}

TEST_F(Mlcommons, FilesAtOddsWithEachOtherAreRefused) {
  const auto altered = [&](const std::string& file, std::int64_t element) {
    const std::string whole = read_file(cache_ / file);
    std::string other = whole;
    other[128 + 8 * static_cast<std::size_t>(element)] ^= 1;
    write_file(cache_ / file, other);
    std::string text = error();
    write_file(cache_ / file, whole);
    return text;
  };
  EXPECT_THAT(altered("user_start.npy", log_.front().uid), HasSubstr("begin at 0"));
  EXPECT_THAT(altered("user_end.npy", log_.back().uid), HasSubstr("user_end.npy"));
  EXPECT_THAT(altered("positions_L30_m6.npy", 3), HasSubstr("anchor 3"));
  EXPECT_THAT(altered("anchor_ts_L30_m6.npy", 0), HasSubstr("anchor"));
  const std::string flags = read_file(cache_ / "flat_is_like.npy");
  std::string broken = flags;
  broken[128] = 7;
  write_file(cache_ / "flat_is_like.npy", broken);
  EXPECT_THAT(error(), testing::AllOf(HasSubstr("event 0"), HasSubstr("like 7")));
}

}  // namespace
}  // namespace hstu
