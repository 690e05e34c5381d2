// The manifest of a prepared dataset: the meaning of its columns, their origin, and their checksums.
// manifest.json is written last: a folder without it is not a dataset.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hstu/base/files.h"
#include "hstu/dataset/event_filters.h"

namespace hstu {

inline constexpr const char* kManifestFile = "manifest.json";
inline constexpr const char* kUserIdsFile = "user_ids.npy";  // (U) original user ids, ascending
inline constexpr const char* kUserOffsetsFile =
    "user_offsets.npy";                                         // (U + 1) events of user u: [o[u], o[u + 1])
inline constexpr const char* kItemFile = "item.npy";            // (N) original item ids
inline constexpr const char* kTimestampFile = "timestamp.npy";  // (N) seconds
inline constexpr const char* kActionFile = "action.npy";        // (N) action bits and kRankableBit
inline constexpr const char* kWeightFile = "weight.npy";        // (N) f32 factors of losses, if there are any
inline constexpr const char* kItemIdsFile = "item_ids.npy";     // ascending item ids; see ItemAttribute
// Of a segment: distinct item ids that no segment before it has, ascending; the first appended one has those
// of all events up to it.
inline constexpr const char* kNewItemsFile = "new_items.npy";
inline constexpr const char* kPoolCountsFile = "pool_counts.npy";  // (N / 256 + 1, actions); pool_counts.h

// Bit 7 of an event's action: the event can be an anchor, i.e. an event to rank. The schema defines bits 0
// to 6.
inline constexpr std::uint8_t kRankableBit = 0x80;

// Names of the files of a context column (one value per event) and of an item attribute (by item id).
std::string context_file(std::string_view name);
std::string attribute_file(std::string_view name);

struct ActionBit {
  std::string name;
  std::uint8_t bit = 0;  // one of 1, 2, 4, ..., 64
  bool operator==(const ActionBit&) const = default;
};

struct EventCounts {
  std::int64_t events = 0;     // N
  std::int64_t users = 0;      // U
  std::int64_t items = 0;      // distinct item ids
  std::int64_t rankable = 0;   // events with kRankableBit
  std::int64_t positives = 0;  // rankable events with the label's bit
  bool operator==(const EventCounts&) const = default;
};

struct TimeRange {
  std::int64_t min = 0, max = 0;  // seconds, both inclusive
  bool operator==(const TimeRange&) const = default;
};

// What the times of a dataset are: seconds, or places in a log that has an order and no times: 0, 1, 2, ...
// by user. Differences of such times mean nothing, and those of two users cannot be compared.
enum class Times { kSeconds, kOrder };

// Neighbouring events of a user at the same time, to the nanosecond: their order is that of the log, which
// says nothing about the user.
struct Ties {
  std::int64_t neighbours = 0;       // events at the time of the event before them
  std::int64_t last_pairs = 0;       // users whose last two events are at the same time
  std::optional<std::int64_t> seed;  // they are in a random order of this seed, not in that of the log
  bool operator==(const Ties&) const = default;
};

// Half-open intervals in seconds: the columns have the events of [train_start, train_end); those of
// [test_start, test_end) are held out.
struct TimeSplit {
  std::int64_t train_start = 0, train_end = 0;
  std::int64_t test_start = 0, test_end = 0;
  bool operator==(const TimeSplit&) const = default;
};

struct ColumnInfo {
  std::string type;        // NumPy's type string: "<u4", "|u1", ...
  std::int64_t count = 0;  // elements
  std::int64_t bytes = 0;  // size of the file, header included
  std::string checksum;    // XXH3-128 of the elements: the file after its .npy header (base/checksum.h)
  std::optional<std::int64_t> min,
      max;  // of the elements; absent if there are none or if they were not computed
  bool operator==(const ColumnInfo&) const = default;
};

// What a segment (segments.h) adds its events to.
struct Extension {
  std::string dataset;  // id of the dataset before it
  EventCounts counts;   // of that dataset and the segment together; users and items are distinct ones
  bool operator==(const Extension&) const = default;
};

struct Manifest {
  std::string name;  // "yambda", "movielens", or the name in the user's schema
  std::string id;    // dataset_id(columns, extends)
  EventCounts counts;
  TimeRange time;
  Times times = Times::kSeconds;
  std::optional<Ties> ties;  // absent if times are an order, and of several segments together
  std::optional<TimeSplit> split;
  std::vector<ActionBit> actions;
  std::string label;                          // an action: a rankable event that has it is a positive
  std::vector<std::string> pools;             // actions whose events may enter a history
  std::vector<std::string> context;           // names of the context columns
  std::vector<std::string> rules;             // conditions of the schema; none: an earlier version
  bool weighted = false;                      // events have weights
  std::vector<std::string> attributes;        // names of the item attributes
  std::map<std::string, ColumnInfo> columns;  // by file name
  // "user", "item": their ids are hashes of texts (names.h). The value: the number of texts whose id another
  // text has; absent if it was not counted because the names were not kept.
  std::map<std::string, std::optional<std::int64_t>> hashed;
  // What has names: "user", "item", "attribute_NAME", "context_NAME" (names.h).
  std::vector<std::string> names;
  std::optional<FilterReport> filters;     // what was left out by counts, if the schema says so
  std::optional<EventCounts> test_events;  // events of the test interval, of users that have train events
  std::optional<Extension> extends;        // of a segment's own manifest
  // Of a dataset with segments: the ids of the datasets that it extends, the oldest first. Not in files.
  std::vector<std::string> extended;

  // Whether it is the dataset `id` or extends it.
  bool extends_or_is(std::string_view id) const;
  // The bit of a named action; Error with the nearest known name if there is no such action.
  std::uint8_t action_bit(std::string_view action) const;
  std::uint8_t label_bit() const { return action_bit(label); }
  // The bits of all pools together: an event enters histories when (action & pool_bits()) != 0.
  std::uint8_t pool_bits() const;
  bool operator==(const Manifest&) const = default;
};

// XXH3-128 over the columns' types, counts and checksums in order of file names, and the id of what they
// extend, as 32 hexadecimal digits: equal ids mean equal data.
std::string dataset_id(const std::map<std::string, ColumnInfo>& columns,
                       const std::optional<Extension>& extends = std::nullopt);

std::string manifest_to_json(const Manifest& manifest);

// Reads and validates; `source` names the file in errors. Throws Error naming a field that is missing, has
// the wrong type or contradicts another one.
Manifest manifest_from_json(std::string_view text, const Path& source);

// The manifest of a dataset, of all its segments together (manifest_of in segments.h). UsageError if the
// folder is not a dataset.
Manifest read_manifest(const Path& dataset);
// The manifest in this folder alone.
Manifest read_own_manifest(const Path& folder);

}  // namespace hstu
