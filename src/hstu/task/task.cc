#include "hstu/task/task.h"

#include <algorithm>

#include "hstu/base/error.h"
#include "hstu/batching/history.h"
#include "hstu/model/dlrmv4.h"
#include "hstu/model/ranking_gr.h"

namespace hstu {
namespace {

// Rows for every id of a column: its largest value + 1, which the manifest knows.
std::int64_t rows_for(const Dataset& dataset, const std::string& file) {
  const ColumnInfo& column = dataset.manifest().columns.at(file);
  check(column.count == 0 || column.max,
        "{}: {} of {} does not say the largest value: give the rows of its table in the configuration, or "
        "prepare the dataset again",
        dataset.folder().string(), kManifestFile, file);
  return std::max<std::int64_t>(column.max.value_or(0), 0) + 1;
}

std::int64_t rows_for_attribute(const Dataset& dataset, const std::string& name) {
  dataset.attribute(name);  // throws if unknown
  return rows_for(dataset, attribute_file(name));
}

// Rows for the ids of a feature that is not hashed.
std::int64_t rows_for_key(const Dataset& dataset, const std::string& key) {
  if (key == "user") return dataset.user_ids().empty() ? 1 : dataset.user_ids().back() + 1;
  if (key == "item") return rows_for(dataset, kItemFile);
  if (key == "hour") return 24;
  if (key == "weekday") return 7;
  const auto& attributes = dataset.manifest().attributes;
  const bool attribute = std::find(attributes.begin(), attributes.end(), key) != attributes.end();
  if (attribute) return rows_for_attribute(dataset, key);
  dataset.context(key);  // throws if unknown
  return rows_for(dataset, context_file(key));
}

SampleFeatures sample_features(const Dataset& dataset, const FeaturesSection& features) {
  SampleFeatures all;
  all.item = {"item", features.item_rows > 0 ? features.item_rows : rows_for(dataset, kItemFile)};
  for (const AttributeSection& a : features.attributes) {
    all.attributes.push_back({a.name, a.rows > 0 ? a.rows : rows_for_attribute(dataset, a.name)});
  }
  for (const ContextualFeature& c : features.context) {
    const bool open = c.rows == 0 && !c.hashed && c.keys.size() == 1;
    all.context.push_back({c.name, open ? rows_for_key(dataset, c.keys.front()) : c.rows});
  }
  return all;
}

DataOptions data_options(const RunOptions& options) {
  DataOptions data = options.data.options;
  for (const AttributeSection& a : options.features.attributes) data.attributes.push_back(a.name);
  data.contextual = options.features.context;
  return data;
}

Dlrmv4Config dlrmv4_config(const RunOptions& options, const Dataset& dataset) {
  Dlrmv4Config model = options.model;
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

Task dlrmv4_task(const RunOptions& options, const Dataset& dataset) {
  DataOptions data = data_options(options);
  data.max_sequence = options.model.max_sequence;
  return {std::make_unique<Dlrmv4>(dlrmv4_config(options, dataset),
                                   sample_features(dataset, options.features), options.seed),
          data, data};
}

constexpr std::int64_t kActionMasks = 128;  // seven bits

Task ranking_gr_task(const RunOptions& options, const Dataset& dataset) {
  RankingGrConfig model = options.ranking;
  const std::string& label = dataset.manifest().label;
  if (model.labels.empty()) model.labels = {label};
  DataOptions data = data_options(options);
  const std::int64_t events = resolve_history(data, dataset.manifest()).longest + 1;
  model.context = static_cast<std::int64_t>(options.features.context.size());
  model.max_sequence = model.context + events * model.tokens_of_event();

  FeatureSpec action{"action", model.action_rows};
  if (action.rows == 0) {
    action.rows = model.action_column.empty() ? kActionMasks : rows_for_key(dataset, model.action_column);
  }
  const bool one_of = model.head == RankingHead::multi_class;
  const auto outputs = static_cast<std::int64_t>(model.labels.size());
  data.events = {.wanted = true,
                 .action_column = model.action_column,
                 .label_column = model.label_column,
                 .labels = model.labels,
                 .one_of = one_of,
                 .label_end = one_of ? outputs : std::int64_t{1} << outputs,
                 .candidates = model.candidates,
                 .tokens = model.tokens_of_event()};
  DataOptions evaluation = data;
  evaluation.events.candidates = 1;
  const bool has_baseline = !one_of && model.label_column.empty() && model.labels.front() == label;
  return {
      std::make_unique<RankingGr>(model, sample_features(dataset, options.features), action, options.seed),
      data, evaluation, has_baseline};
}

}  // namespace

Task make_task(const RunOptions& options, const Dataset& dataset) {
  return options.model_kind == ModelKind::dlrmv4 ? dlrmv4_task(options, dataset)
                                                 : ranking_gr_task(options, dataset);
}

}  // namespace hstu
