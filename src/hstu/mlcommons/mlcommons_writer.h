// Yambda's events as the MLCommons benchmark prepares them: train_sessions.parquet, session_index.parquet,
// test_events.parquet, item_popularity.npy, split_meta.json and the sixteen files of an "HSTU cache". If
// min_history is not history_length, the reference has written the positions for both, and the times for
// min_history alone: seventeen files.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hstu/base/npy.h"
#include "hstu/dataset/event_table.h"
#include "hstu/events/schema.h"
#include "hstu/mlcommons/mlcommons_tables.h"

namespace hstu {

struct MlcommonsOptions {
  std::int64_t history_length = 4086;
  std::int64_t min_history = 4086;  // earlier events of any kind that an anchor's user must have
};

// Yambda's schema, extended for the layout: every type of event has a bit, and played_ratio_pct and
// track_length_seconds are context columns in addition to is_organic.
Schema mlcommons_schema(const Path& input, const SplitRule& split);

// "hstu_cache_L4086".
std::string mlcommons_cache_folder(const MlcommonsOptions& options);

// Writes events of mlcommons_schema(), which arrive in order of (user, time). The bytes equal NumPy's
// (format 1.0). Memory: 8 bytes per item id, at most `memory`. Error naming a file that cannot be written, or
// a value that the reference's types cannot hold.
class MlcommonsWriter : public EventSink {
 public:
  // Creates OUTPUT/hstu_cache_L.../; `folder` must exist.
  MlcommonsWriter(const Path& folder, const MlcommonsOptions& options, std::int64_t memory);
  void append(EventTable events) override;
  // Receives the events of the test interval.
  EventSink& test_events() { return test_; }
  // Closes all files; _READY is written last.
  MlcommonsCounts finish(const MlcommonsSplit& split);

 private:
  class TestSink : public EventSink {
   public:
    explicit TestSink(const Path& folder) : file_(folder) {}
    void append(EventTable events) override;
    std::int64_t close();

   private:
    MlcommonsTestEvents file_;
  };

  void add_user(std::int64_t user);
  void end_user();
  void count_item(std::int64_t item);

  Path folder_, cache_;
  MlcommonsOptions options_;
  std::int64_t memory_;
  std::int64_t position_ = 0, user_start_ = 0, users_ = 0;
  std::optional<std::int64_t> user_;
  std::vector<std::int64_t> popularity_;
  NpyWriter<std::int64_t> uid_, item_, time_, type_;
  NpyWriter<float> ratio_;
  NpyWriter<bool> is_listen_plus_, is_like_, is_skip_;
  NpyWriter<std::int8_t> is_organic_;
  NpyWriter<std::int64_t> user_starts_, user_ends_, users_seen_, positions_, anchor_times_;
  std::optional<NpyWriter<std::int64_t>> full_positions_;  // of anchors with history_length earlier events
  MlcommonsSessions sessions_;
  TestSink test_;
};

}  // namespace hstu
