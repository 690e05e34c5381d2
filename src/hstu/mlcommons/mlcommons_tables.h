// The Parquet files and split_meta.json that the MLCommons reference leaves beside its cache: the events of
// the train interval by session, an index of the sessions, and the events of the test interval.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "hstu/columns/parquet_file.h"
#include "hstu/dataset/event_table.h"
#include "hstu/dataset/manifest.h"
#include "hstu/dataset/time_split.h"

namespace hstu {

// Whole seconds between two events of a user after which a new session begins.
inline constexpr std::int64_t kMlcommonsSessionGap = 1'800;

// An event with the types of the reference's tables.
struct MlcommonsEvent {
  std::uint32_t user = 0, item = 0, time = 0;
  std::uint8_t type = 0;  // 0 listen, 1 like, 2 dislike, 3 unlike, 4 undislike
  std::uint8_t organic = 0;
  std::optional<std::uint16_t> played_ratio = {};   // percent
  std::optional<std::uint32_t> track_seconds = {};  // length of the item
};

// train_sessions.parquet: a row for each session in order of (uid, session_id), with lists of its events. The
// sessions of a user are numbered from 0. session_index.parquet: a row for each user, with lists of the
// numbers of its sessions, their lengths and the sums of these.
class MlcommonsSessions {
 public:
  explicit MlcommonsSessions(const Path& folder);
  ~MlcommonsSessions();
  // Events arrive in order of (user, time).
  void append(const MlcommonsEvent& event);
  // Call it once, at the end.
  void close();

  std::int64_t sessions() const { return sessions_; }

 private:
  struct Columns;
  void begin_session(std::uint32_t user, bool first_of_user);
  void end_session();

  ParquetFile session_file_, index_file_;
  std::unique_ptr<Columns> columns_;  // of the row groups to be written next
  std::int64_t sessions_ = 0;
  std::uint32_t session_ = 0, session_events_ = 0, user_events_ = 0;
  std::optional<MlcommonsEvent> last_;
};

// test_events.parquet: the columns of Yambda's events with event types as numbers.
class MlcommonsTestEvents {
 public:
  explicit MlcommonsTestEvents(const Path& folder);
  ~MlcommonsTestEvents();
  void append(const MlcommonsEvent& event);
  // Call it once, at the end.
  void close();

  std::int64_t events() const { return events_; }

 private:
  struct Columns;
  ParquetFile file_;
  std::unique_ptr<Columns> columns_;  // of the row group to be written next
  std::int64_t events_ = 0;
};

struct MlcommonsSplit {
  std::string size;                // "5b": the name of the folder of the events
  TimeRange time;                  // of all events
  std::optional<TimeSplit> split;  // absent: all are train events
  SplitRule rule;
};

struct MlcommonsCounts {
  std::int64_t events = 0, users = 0, anchors = 0, sessions = 0, test_events = 0, bytes = 0;
};

// split_meta.json: the bytes that Python's json module writes with an indent of 2.
std::string mlcommons_split_json(const MlcommonsSplit& split, const MlcommonsCounts& counts);

}  // namespace hstu
