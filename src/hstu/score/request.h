// A request to a scorer from memory, and its answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "hstu/base/error.h"

namespace hstu {

enum class Asked {
  scores,   // of each item; a model that ranks
  top,      // the highest scores of the items, or of all that the model knows
  vectors,  // of the user; kind retrieval
};

// The user's events: vectors of one length, in any order; those of equal times in the order of their rows.
struct RequestEvents {
  std::vector<std::int64_t> item, time;  // original ids, at least 0; seconds
  std::vector<std::uint8_t> action;      // sums of action bits
  // Of each context column of the dataset, in its order; empty where the model does not read it.
  std::vector<std::vector<std::int64_t>> context;
};

struct ScoreRequest {
  Asked asked = Asked::scores;
  std::int64_t user = 0;                  // original id
  std::optional<std::int64_t> time = {};  // seconds; none: kind retrieval alone, after the user's last event
  // None: those that the opened dataset has of the user. Events at `time` or later do not count.
  std::optional<RequestEvents> events = {};
  // Of the context columns of the dataset, in its order; 0 where no contextual feature reads it.
  std::vector<std::int64_t> context = {};
  std::vector<std::int64_t> items = {};  // candidates, original ids
  std::int64_t top = 0;
  std::size_t task = 0;       // that ranks
  bool exclude_seen = false;  // top: without the items of the user's events
  // exclude_seen: of those events with an action of this sum of bits alone; 0: of all.
  std::uint8_t seen_actions = 0;
};

// What is wrong with one of several requests that were asked together.
[[noreturn]] inline void fail_request(std::size_t number, const UsageError& error) {
  fail_usage("requests[{}]: {}", number, error.what());
}

struct ScoreAnswer {
  std::vector<std::int64_t> items;   // of top: in the order of their scores
  std::vector<float> scores;         // (items, tasks); of top by kind retrieval (items); of vectors (E)
  bool has_history = false;          // the user has events before the time
  std::int64_t untrained_items = 0;  // RequestScorer::untrained_items(), where a queue answers
};

}  // namespace hstu
