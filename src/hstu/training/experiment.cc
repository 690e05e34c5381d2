#include "hstu/training/experiment.h"

#include <algorithm>

#include "hstu/base/text.h"

namespace hstu {
namespace {

// Rows for every id of a column: its largest value + 1. One pass over the column, and only where the
// configuration leaves the number open.
std::int64_t rows_for(const MappedColumn& column) {
  std::int64_t largest = 0;
  for (std::int64_t i = 0; i < column.size(); ++i) largest = std::max(largest, column[i]);
  return largest + 1;
}

// Rows for the ids of a feature that is not hashed.
std::int64_t rows_for_key(const Dataset& dataset, const std::string& key) {
  if (key == "user") return dataset.user_ids().back() + 1;
  if (key == "item") return rows_for(dataset.item());
  if (key == "hour") return 24;
  if (key == "weekday") return 7;
  const auto& attributes = dataset.manifest().attributes;
  const bool attribute = std::find(attributes.begin(), attributes.end(), key) != attributes.end();
  return rows_for(attribute ? dataset.attribute(key) : dataset.context(key));
}

FeatureTables feature_tables(const Dataset& dataset, const FeaturesSection& features) {
  FeatureTables tables;
  tables.item = {"item", features.item_rows > 0 ? features.item_rows : rows_for(dataset.item())};
  for (const AttributeSection& a : features.attributes) {
    tables.attributes.push_back({a.name, a.rows > 0 ? a.rows : rows_for(dataset.attribute(a.name))});
  }
  for (const ContextualFeature& c : features.context) {
    const bool open = c.rows == 0 && !c.hashed && c.keys.size() == 1;
    tables.context.push_back({c.name, open ? rows_for_key(dataset, c.keys.front()) : c.rows});
  }
  return tables;
}

DataOptions data_options(const RunOptions& options) {
  DataOptions data = options.data.options;
  data.max_sequence = options.model.max_sequence;
  for (const AttributeSection& a : options.features.attributes) data.attributes.push_back(a.name);
  data.contextual = options.features.context;
  return data;
}

ModelConfig model_config(const RunOptions& options, const Dataset& dataset) {
  ModelConfig model = options.model;
  for (const ActionBit& action : dataset.manifest().actions) {
    const auto& wanted = options.features.actions;
    if (wanted.empty() || std::find(wanted.begin(), wanted.end(), action.name) != wanted.end()) {
      model.action_bits.push_back(action.bit);
    }
  }
  for (const std::string& name : options.features.actions)
    dataset.manifest().action_bit(name);  // throws if unknown
  model.attributes = static_cast<std::int64_t>(options.features.attributes.size());
  model.context = static_cast<std::int64_t>(options.features.context.size());
  return model;
}

}  // namespace

Experiment::Experiment(const RunOptions& options)
    : dataset_(options.data.path),
      anchors_(find_anchors(dataset_, options.data.options, options.evaluation.holdout)),
      batches_(dataset_, data_options(options)),
      learner_(options, model_config(options, dataset_), feature_tables(dataset_, options.features)) {
  check_consistency(options);
}

BatchSchedule Experiment::schedule(BatchCursor start) const {
  ScheduleOptions schedule;
  schedule.batch_size = options().training.batch_size;
  schedule.drop_last = options().training.drop_last;
  schedule.epochs = options().training.epochs;
  schedule.first_window = options().training.first_window;
  schedule.windows = options().training.windows;
  schedule.shuffle_fraction = options().data.shuffle_fraction;
  schedule.seed = options().seed;
  return {anchors_.training, schedule, start};
}

}  // namespace hstu
