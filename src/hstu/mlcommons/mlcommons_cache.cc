#include "hstu/mlcommons/mlcommons_cache.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "hstu/base/error.h"
#include "hstu/base/json_text.h"

namespace hstu {
namespace {

constexpr std::string_view kPositions = "positions_", kTimes = "anchor_ts_";

struct CacheFile {
  const char* name;
  const char* type;  // NumPy's
};
constexpr CacheFile kEventFiles[] = {
    {"flat_uid.npy", "<i8"},         {"flat_item_ids.npy", "<i8"},     {"flat_timestamps.npy", "<i8"},
    {"flat_event_types.npy", "<i8"}, {"flat_played_ratio.npy", "<f4"}, {"flat_is_listen_plus.npy", "|b1"},
    {"flat_is_like.npy", "|b1"},     {"flat_is_skip.npy", "|b1"},      {"flat_is_organic.npy", "|i1"}};

// Removes and returns the number at the beginning of `text`; -1: there is none.
std::int64_t take_number(std::string_view& text) {
  std::int64_t value = -1;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value).ptr;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

// "L30_m6.npy": min_history 6, and the name for min_history = history length, "L30.npy".
struct AnchorFile {
  std::int64_t min_history;
  std::string full;
};
std::optional<AnchorFile> anchor_file(std::string_view rule) {
  std::string_view rest = rule.substr(std::min<std::size_t>(1, rule.size()));  // behind the L
  const std::int64_t length = take_number(rest);
  AnchorFile file{length, fmt::format("L{}.npy", length)};
  if (rest.starts_with("_m")) {
    rest.remove_prefix(2);
    file.min_history = take_number(rest);
  }
  if (length < 0 || file.min_history < 0 || rest != ".npy") return std::nullopt;
  return file;
}

}  // namespace

std::int64_t check_cache_column(const Path& folder, const CacheColumn& column) {
  const Path path = folder / column.name;
  check(std::filesystem::exists(path), "{}: the file is missing: a cache has sixteen files; copy it again",
        path.string());
  const MappedFile file(path);
  const NpyHeader header = parse_npy_header(file.bytes(), path);
  check(header.type == column.type && header.shape.size() == 1,
        "{}: expected one dimension of {}, found {} of {}", path.string(), column.type, header.shape.size(),
        header.type);
  check(column.count < 0 || header.count() == column.count,
        "{}: expected {} elements, found {}: copy it again", path.string(), column.count, header.count());
  return header.count();
}

MlcommonsCache::MlcommonsCache(const Path& folder) : MlcommonsCache(folder, Unchecked{}) {
  check_files();
}

MlcommonsCache::MlcommonsCache(const Path& folder, Unchecked) : folder_(std::filesystem::absolute(folder)) {
  if (!std::filesystem::exists(file("_READY"))) {
    fail_usage(
        "{} is not a complete cache: it has no _READY, which is written last; name the folder "
        "hstu_cache_L<history length> of MLCommons' data",
        folder_.string());
  }
  read_store_meta();
  find_positions();
}

void MlcommonsCache::read_store_meta() {
  const Path path = file("store_meta.json");
  try {
    const Json json = parse_json(read_file(path), path);
    for (const char* key : {"num_users", "total_events"}) {
      const Json& value = json.at(key);
      check(value.is_number_integer() && value.get<std::int64_t>() > 0,
            "{}: {}: expected a positive integer, found {}", path.string(), key, value.dump());
      (*key == 'n' ? users_ : events_) = value.get<std::int64_t>();
    }
  } catch (const nlohmann::json::exception& error) {
    fail("{}: expected {{\"num_users\": ..., \"total_events\": ...}}: {}", path.string(),
         json_problem(error));
  }
}

// positions_L4086.npy: min_history = 4086; positions_L4086_m64.npy: 64. The reference writes the first with
// the cache. When it first trains it writes the anchors' times, and with another min_history than the history
// length the second positions too. Of several files with times, those of the largest min_history are used.
void MlcommonsCache::find_positions() {
  std::map<std::int64_t, std::string> positions,
      times;         // names behind "positions_" and "anchor_ts_", by min_history
  std::string full;  // of the positions that every cache has
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    const std::string name = entry.path().filename().string();
    for (const std::string_view prefix : {kPositions, kTimes}) {
      if (!name.starts_with(prefix)) continue;
      const std::string rule = name.substr(prefix.size());
      const std::optional<AnchorFile> file = anchor_file(rule);
      if (!file) continue;
      (prefix == kPositions ? positions : times)[file->min_history] = rule;
      full = file->full;
    }
  }
  check(!full.empty(), "{}: positions_L<history length>.npy is missing: copy the cache again",
        folder_.string());
  const auto expect = [&](std::string_view prefix, const std::string& rule) {
    check(std::filesystem::exists(file(std::string(prefix) + rule)),
          "{}: {}{} is missing: copy the cache again", folder_.string(), prefix, rule);
  };
  expect(kPositions, full);
  for (const auto& [min_history, rule] : times) expect(kPositions, rule);
  for (const auto& [min_history, rule] : positions)
    if (rule != full) expect(kTimes, rule);
  const auto& [min_history, rule] = times.empty() ? *positions.rbegin() : *times.rbegin();
  min_history_ = min_history;
  positions_ = std::string(kPositions) + rule;
  if (!times.empty()) anchor_times_ = std::string(kTimes) + rule;
  if (rule != full) full_positions_ = std::string(kPositions) + full;
}

std::vector<CacheColumn> MlcommonsCache::columns() const {
  std::vector<CacheColumn> columns;
  for (const CacheFile& file : kEventFiles) columns.push_back({file.name, file.type, events_});
  columns.push_back({"unique_uids.npy", "<i8", users_});
  for (const std::string& name : {std::string("user_start.npy"), std::string("user_end.npy"), positions_,
                                  full_positions_, anchor_times_}) {
    if (!name.empty()) columns.push_back({.name = name, .type = "<i8"});
  }
  return columns;
}

void MlcommonsCache::check_files() const {
  std::map<std::string, std::int64_t> counts;
  for (const CacheColumn& column : columns()) counts[column.name] = check_cache_column(folder_, column);
  check_cache_column(folder_, {"user_end.npy", "<i8", counts["user_start.npy"]});
  if (has_anchor_times()) check_cache_column(folder_, {anchor_times_, "<i8", counts[positions_]});
}

std::vector<std::int64_t> MlcommonsCache::user_offsets() const {
  const NpyColumn<std::int64_t> ids(file("unique_uids.npy")), start(file("user_start.npy")),
      end(file("user_end.npy"));
  std::vector<std::int64_t> offsets{0};
  for (const std::int64_t id : ids.values()) {
    check(id >= 0 && id < start.size(), "{}: the user {} is beyond the {} entries of user_start.npy",
          file("unique_uids.npy").string(), id, start.size());
    check(
        start[id] == offsets.back() && end[id] > start[id],
        "{}: user_start.npy and user_end.npy: expected the events of user {} to begin at {}, found [{}, {})",
        folder_.string(), id, offsets.back(), start[id], end[id]);
    offsets.push_back(end[id]);
  }
  check(offsets.back() == events_, "{}: expected the last user's events to end at {}, found {}",
        file("user_end.npy").string(), events_, offsets.back());
  return offsets;
}

}  // namespace hstu
