#include "hstu/mlcommons/mlcommons_writer.h"

#include <limits>
#include <utility>

#include <fmt/format.h>

#include "hstu/base/error.h"
#include "hstu/base/text.h"
#include "hstu/events/builtin_schemas.h"

namespace hstu {
namespace {

// In addition to those of yambda_schema.
constexpr std::uint8_t kDislike = 8, kUnlike = 16, kUndislike = 32;
enum EventCode : std::uint8_t { kListenCode, kLikeCode, kDislikeCode, kUnlikeCode, kUndislikeCode };
enum Context : std::size_t { kOrganic, kPlayedRatio, kTrackSeconds };
constexpr std::int64_t kNoValue = std::numeric_limits<std::uint32_t>::max();  // as a length, 136 years

EventCode code_of(std::uint8_t action) {
  if (action & (kListenPlus | kSkip)) return kListenCode;
  if (action & kLike) return kLikeCode;
  if (action & kDislike) return kDislikeCode;
  return action & kUnlike ? kUnlikeCode : kUndislikeCode;
}

// Events with the types of the reference. Error naming the first value that they cannot hold.
std::vector<MlcommonsEvent> typed(const EventTable& events) {
  std::vector<MlcommonsEvent> result(static_cast<std::size_t>(events.size()));
  std::int64_t row = 0;
  const auto number = [&]<typename T>(const char* column, const IntegerColumn& values, T& to) {
    const std::int64_t value = values[row];
    check(std::in_range<T>(value),
          "{}: the layout has {} bits for it, which cannot hold {} (user {}, time {})", column, 8 * sizeof(T),
          value, events.user[row], events.time[row]);
    to = static_cast<T>(value);
  };
  const auto optional = [&]<typename T>(const char* column, const IntegerColumn& values,
                                        std::optional<T>& to) {
    if (values[row] != kNoValue) number(column, values, to.emplace());
  };
  for (MlcommonsEvent& event : result) {
    number("uid", events.user, event.user);
    number("item_id", events.item, event.item);
    number("timestamp", events.time, event.time);
    number("is_organic", events.context[kOrganic], event.organic);
    check(event.organic <= 1, "is_organic: expected 0 or 1, found {} (user {}, time {})", event.organic,
          event.user, event.time);
    optional("played_ratio_pct", events.context[kPlayedRatio], event.played_ratio);
    optional("track_length_seconds", events.context[kTrackSeconds], event.track_seconds);
    event.type = code_of(events.action[static_cast<std::size_t>(row)]);
    ++row;
  }
  return result;
}

Path made(const Path& folder) {
  std::filesystem::create_directories(folder);
  return folder;
}

// "L4086", or "L4086_m100" if the two lengths differ: the end of the names of the anchor files.
std::string anchor_suffix(const MlcommonsOptions& options) {
  return options.min_history == options.history_length
             ? fmt::format("L{}", options.history_length)
             : fmt::format("L{}_m{}", options.history_length, options.min_history);
}

}  // namespace

Schema mlcommons_schema(const Path& input, const SplitRule& split) {
  Schema schema = yambda_schema(input, split);
  for (const auto& [name, bit] :
       {std::pair{"dislike", kDislike}, {"unlike", kUnlike}, {"undislike", kUndislike}}) {
    schema.actions.push_back(
        {.name = name, .bit = bit, .when = {parse_condition(std::string("event_type = ") + name)}});
  }
  schema.context = {{.name = "is_organic", .column = "is_organic"},
                    {.name = "played_ratio", .column = "played_ratio_pct", .null_value = kNoValue},
                    {.name = "track_seconds", .column = "track_length_seconds", .null_value = kNoValue}};
  schema.null_as_zero.emplace_back("track_length_seconds");
  schema.attributes.clear();  // the layout uses the original mappings
  return schema;
}

std::string mlcommons_cache_folder(const MlcommonsOptions& options) {
  return fmt::format("hstu_cache_L{}", options.history_length);
}

MlcommonsWriter::MlcommonsWriter(const Path& folder, const MlcommonsOptions& options, std::int64_t memory)
    : folder_(folder),
      cache_(made(folder / mlcommons_cache_folder(options))),
      options_(options),
      memory_(memory),
      uid_(cache_ / "flat_uid.npy"),
      item_(cache_ / "flat_item_ids.npy"),
      time_(cache_ / "flat_timestamps.npy"),
      type_(cache_ / "flat_event_types.npy"),
      ratio_(cache_ / "flat_played_ratio.npy"),
      is_listen_plus_(cache_ / "flat_is_listen_plus.npy"),
      is_like_(cache_ / "flat_is_like.npy"),
      is_skip_(cache_ / "flat_is_skip.npy"),
      is_organic_(cache_ / "flat_is_organic.npy"),
      user_starts_(cache_ / "user_start.npy"),
      user_ends_(cache_ / "user_end.npy"),
      users_seen_(cache_ / "unique_uids.npy"),
      positions_(cache_ / fmt::format("positions_{}.npy", anchor_suffix(options))),
      anchor_times_(cache_ / fmt::format("anchor_ts_{}.npy", anchor_suffix(options))),
      sessions_(folder),
      test_(folder) {
  if (options.min_history != options.history_length)
    full_positions_.emplace(cache_ / fmt::format("positions_L{}.npy", options.history_length));
}

void MlcommonsWriter::append(EventTable events) {
  uid_.append(events.user.integers());
  item_.append(events.item.integers());
  time_.append(events.time.integers());
  const std::vector<MlcommonsEvent> rows = typed(events);
  for (std::size_t i = 0; i < rows.size(); ++i, ++position_) {
    const MlcommonsEvent& event = rows[i];
    if (event.user != user_) add_user(event.user);
    sessions_.append(event);
    count_item(event.item);
    const std::uint8_t action = events.action[i];
    type_.append(event.type);
    ratio_.append(event.played_ratio.value_or(0));
    is_listen_plus_.append((action & kListenPlus) != 0);
    is_like_.append((action & kLike) != 0);
    is_skip_.append((action & kSkip) != 0);
    is_organic_.append(static_cast<std::int8_t>(event.organic));
    if (event.type != kListenCode) continue;
    const std::int64_t earlier = position_ - user_start_;
    if (full_positions_ && earlier >= options_.history_length) full_positions_->append(position_);
    if (earlier < options_.min_history) continue;
    positions_.append(position_);
    anchor_times_.append(event.time);
  }
}

void MlcommonsWriter::TestSink::append(EventTable events) {
  for (const MlcommonsEvent& event : typed(events)) file_.append(event);
}

std::int64_t MlcommonsWriter::TestSink::close() {
  file_.close();
  return file_.events();
}

void MlcommonsWriter::end_user() {
  if (user_) user_ends_.append(position_);
}

// Ids without a user have -1 in both columns.
void MlcommonsWriter::add_user(std::int64_t user) {
  end_user();
  constexpr std::int64_t kNobody = -1;
  for (std::int64_t id = user_ ? *user_ + 1 : 0; id < user; ++id) {
    user_starts_.append(kNobody);
    user_ends_.append(kNobody);
  }
  user_starts_.append(position_);
  users_seen_.append(user);
  user_ = user;
  user_start_ = position_;
  ++users_;
}

void MlcommonsWriter::count_item(std::int64_t item) {
  if (item >= static_cast<std::int64_t>(popularity_.size())) {
    const std::int64_t bytes =
        3 * (item + 1) * std::int64_t{sizeof(std::int64_t)};  // old and new, while it grows
    if (bytes > memory_) {
      fail_usage("item_popularity.npy is indexed by item id and takes {} for item id {}: increase --memory",
                 human_bytes(static_cast<double>(bytes)), item);
    }
    popularity_.resize(static_cast<std::size_t>(item) + 1);
  }
  ++popularity_[static_cast<std::size_t>(item)];
}

MlcommonsCounts MlcommonsWriter::finish(const MlcommonsSplit& split) {
  end_user();
  uid_.close();
  item_.close();
  time_.close();
  type_.close();
  ratio_.close();
  is_listen_plus_.close();
  is_like_.close();
  is_skip_.close();
  is_organic_.close();
  user_starts_.close();
  user_ends_.close();
  users_seen_.close();
  positions_.close();
  if (full_positions_) full_positions_->close();
  anchor_times_.close();
  write_npy(folder_ / "item_popularity.npy", popularity_);
  sessions_.close();
  MlcommonsCounts counts{.events = position_,
                         .users = users_,
                         .anchors = positions_.count(),
                         .sessions = sessions_.sessions(),
                         .test_events = test_.close()};
  write_file(folder_ / "split_meta.json", mlcommons_split_json(split, counts));
  write_file(cache_ / "store_meta.json",
             fmt::format("{{\"num_users\": {}, \"total_events\": {}}}", users_, position_));
  write_file(cache_ / "_READY", "");
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_)) {
    if (entry.is_regular_file()) counts.bytes += static_cast<std::int64_t>(entry.file_size());
  }
  return counts;
}

}  // namespace hstu
