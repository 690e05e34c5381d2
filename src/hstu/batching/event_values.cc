#include "hstu/batching/event_values.h"

#include <algorithm>
#include <iterator>

#include "hstu/base/contains.h"
#include "hstu/base/error.h"
#include "hstu/base/terminal.h"
#include "hstu/dataset/names.h"

namespace hstu {

EventValues::EventValues(const Dataset& dataset, const EventOptions& options)
    : dataset_(dataset), options_(options) {
  if (!options.wanted) return;
  if (!options.action_column.empty()) action_ = &dataset.context(options.action_column);
  if (!options.label_column.empty()) {
    label_ = &dataset.context(options.label_column);
    match_texts();
    return;
  }
  for (const std::string& name : options.labels) bits_.push_back(dataset.manifest().action_bit(name));
}

// The codes of texts follow the order in which a log has them first, and say nothing.
void EventValues::match_texts() {
  const std::string of = "context_" + options_.label_column;
  const std::vector<std::string>& known = dataset_.manifest().names;
  if (!contains(known, of)) return;
  if (!options_.one_of)
    fail_usage(
        "model.label_column: the column \"{}\" contains texts, and labels of independent tasks are bits of "
        "integers: set model.head = \"multi_class\"",
        options_.label_column);
  const auto class_of = [&](std::string_view text) {
    const auto found = std::find(options_.labels.begin(), options_.labels.end(), text);
    return found == options_.labels.end() ? std::int64_t{-1} : found - options_.labels.begin();
  };
  const Names names(dataset_.folder(), dataset_.manifest(), of);
  std::vector<std::string_view> new_texts;
  classes_.assign(static_cast<std::size_t>(names.size()) + 1, -1);
  classes_[0] = class_of("null");
  for (std::int64_t row = 0; row < names.size(); ++row) {
    const std::int64_t code = names.id(row);
    check(code > 0 && code <= names.size(),
          "{}: expected codes from 1 to {}, found {}: prepare the dataset again",
          (dataset_.folder() / name_ids_file(of)).string(), names.size(), code);
    classes_[static_cast<std::size_t>(code)] = class_of(names.name(row));
    if (classes_[static_cast<std::size_t>(code)] >= 0) continue;
    new_texts.push_back(names.name(row));
    if (options_.new_labels == NewLabels::refused)
      fail_usage(
          "model.labels: the column \"{}\" (model.label_column) contains \"{}\", which is none of {}: name "
          "each "
          "of its texts, in any order, and \"null\" if events have none",
          options_.label_column, names.name(row), fmt::join(options_.labels, ", "));
  }
  if (options_.new_labels == NewLabels::left_out && !new_texts.empty())
    print_note(
        "WARNING: the column \"{}\" (model.label_column) has texts that are no class of the model: {}: "
        "events "
        "with them are not learnt, and in evaluations they have none of the classes: begin a run whose "
        "model.labels name them\n",
        options_.label_column, fmt::join(new_texts, ", "));
}

std::optional<std::size_t> EventValues::action_column() const {
  if (action_ == nullptr) return {};
  const std::vector<std::string>& names = dataset_.manifest().context;
  return static_cast<std::size_t>(std::ranges::find(names, options_.action_column) - names.begin());
}

std::int64_t EventValues::action(std::int64_t position) const {
  if (action_ != nullptr) return (*action_)[position];
  return dataset_.action()[static_cast<std::size_t>(position)] & ~kRankableBit;
}

std::int64_t EventValues::label(std::int64_t position) const {
  const bool refuses = options_.new_labels == NewLabels::refused;
  if (label_ != nullptr) {
    const std::int64_t value = (*label_)[position];
    const bool text = value >= 0 && value < std::ssize(classes_);
    const std::int64_t label = text ? classes_[static_cast<std::size_t>(value)] : value;
    if (!refuses && options_.one_of && (text || label >= options_.label_end))
      return label < options_.label_end ? label : -1;
    if (!refuses && !options_.one_of && label >= 0) return label & (options_.label_end - 1);
    check(!text || label >= 0,
          "column {}: event {} has no text, and model.labels has no class \"null\": name it, or leave such "
          "events "
          "out of the dataset (drop_null)",
          options_.label_column, position);
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
  if (!refuses && options_.one_of) return -1;
  check(!options_.one_of, "event {} has none of the actions that model.labels names as classes", position);
  return label;
}

}  // namespace hstu
