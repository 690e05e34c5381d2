// Answers "how many events of this key came before this time?" with counts of events and positives.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hstu/batching/distinct_ids.h"

namespace hstu {

struct RateCounts {
  std::int64_t events = 0, positives = 0;
};

// Memory grows with the questions, not with the events: an event is added to the first later question of its
// key, and the answers are running sums over a key's questions in order of time.
class RunningCounts {
 public:
  // Question q asks for events of keys[q] strictly before times[q].
  RunningCounts(std::span<const std::int64_t> keys, std::span<const std::int64_t> times);

  // Adds an event. Thread-safe; the sums do not depend on the order of calls.
  void add(std::int64_t key, std::int64_t time, bool positive);

  // Adds events of one key that come in order of time. Consecutive events of the same question are added
  // together, so that threads contend less for a shared key.
  class Run {
   public:
    Run(RunningCounts& counts, std::int64_t key) : counts_(counts), key_(counts.distinct_.find(key)) {}
    ~Run() { flush(); }
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;
    void add(std::int64_t time, bool positive);

   private:
    void flush();

    RunningCounts& counts_;
    std::int32_t key_;
    std::size_t place_ = 0;
    RateCounts pending_;
  };

  // The answers by question. Call it after all events were added.
  std::vector<RateCounts> answers() const;

 private:
  // The first question of the key later than `time`; the end of the key's questions if there is none.
  std::size_t first_later(std::int32_t key, std::int64_t time) const;
  void add_at(std::size_t place, const RateCounts& counts);

  DistinctIds distinct_;            // keys, numbered ascending
  std::vector<std::size_t> begin_;  // (keys + 1) questions of key k: places [begin[k], begin[k + 1])
  std::vector<std::size_t> order_;  // [place] question, by key and time
  std::vector<std::int64_t> times_;
  std::vector<RateCounts> added_;  // [place] since the question before
};

}  // namespace hstu
