// The action id and the label of events, for models that predict at several events of a sample.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "hstu/batching/options.h"
#include "hstu/dataset/dataset.h"

namespace hstu {

// The options resolved against a dataset, which must outlive it.
class EventValues {
 public:
  // UsageError for names that the dataset does not have, and if the label column contains texts that `labels`
  // does not name and new labels are refused; if they are left out, says which texts these are.
  EventValues(const Dataset& dataset, const EventOptions& options);

  std::int64_t action(std::int64_t position) const;
  // Error naming the position if the label is outside [0, label_end), or if the event has none of the actions
  // of which it should have one. Where new labels are not refused: -1 for a class, and only the known bits.
  std::int64_t label(std::int64_t position) const;
  // Whether the event is an example.
  bool rankable(std::int64_t position) const {
    return (dataset_.action()[static_cast<std::size_t>(position)] & kRankableBit) != 0 &&
           (options_.new_labels != NewLabels::left_out || label(position) >= 0);
  }

  // The place, among the context columns, of action ids that are not made of the action's bits.
  std::optional<std::size_t> action_column() const;

  bool wanted() const { return options_.wanted; }
  std::int64_t tokens() const { return options_.tokens; }
  // How many of a sample's `events` are scored: the last ones.
  std::int64_t candidates(std::int64_t events) const {
    return options_.candidates == 0 ? events : std::min(options_.candidates, events);
  }

 private:
  void match_texts();

  const Dataset& dataset_;
  EventOptions options_;
  const MappedColumn* action_ = nullptr;
  const MappedColumn* label_ = nullptr;
  std::vector<std::uint8_t> bits_;     // of the actions in `labels`
  std::vector<std::int64_t> classes_;  // of a label column of texts, by code; -1: none. Empty: integers
};

}  // namespace hstu
