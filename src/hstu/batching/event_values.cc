#include "hstu/batching/event_values.h"

#include "hstu/base/error.h"

namespace hstu {

EventValues::EventValues(const Dataset& dataset, const EventOptions& options)
    : dataset_(dataset), options_(options) {
  if (!options.wanted) return;
  if (!options.action_column.empty()) action_ = &dataset.context(options.action_column);
  if (!options.label_column.empty()) {
    label_ = &dataset.context(options.label_column);
    return;
  }
  for (const std::string& name : options.labels) bits_.push_back(dataset.manifest().action_bit(name));
}

std::int64_t EventValues::action(std::int64_t position) const {
  if (action_ != nullptr) return (*action_)[position];
  return dataset_.action()[static_cast<std::size_t>(position)] & ~kRankableBit;
}

std::int64_t EventValues::label(std::int64_t position) const {
  if (label_ != nullptr) {
    const std::int64_t label = (*label_)[position];
    check(
        label >= 0 && label < options_.label_end,
        "column {}: the label of event {} is {}: expected 0 to {}; model.labels names too few labels, or the "
        "column is another one",
        options_.label_column, position, label, options_.label_end - 1);
    return label;
  }
  const std::uint8_t action = dataset_.action()[static_cast<std::size_t>(position)];
  std::int64_t label = 0;
  for (std::size_t k = 0; k < bits_.size(); ++k) {
    if ((action & bits_[k]) == 0) continue;
    if (options_.one_of) return static_cast<std::int64_t>(k);
    label |= std::int64_t{1} << k;
  }
  check(!options_.one_of, "event {} has none of the actions that model.labels names as classes", position);
  return label;
}

}  // namespace hstu
