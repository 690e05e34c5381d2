#include "hstu/task/dataset_facts.h"

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "hstu/base/contains.h"
#include "hstu/base/error.h"
#include "hstu/base/text.h"
#include "hstu/batching/attribute_of_items.h"
#include "hstu/task/kind_options.h"

namespace hstu {
namespace {

void expect_column(const std::vector<std::string>& names, const std::string& name, const char* kind) {
  if (contains(names, name)) return;
  fail_usage("the dataset has no {} \"{}\"{}", kind, name,
             names.empty() ? std::string("; it has none") : suggestion(name, names));
}

// The largest value of a column + 1.
std::int64_t rows_of_file(const DatasetFacts& facts, const std::string& file) {
  const ColumnInfo& column = facts.manifest.columns.at(file);
  check(column.count == 0 || column.max,
        "{}: {} of {} does not say the largest value: give the rows of its table in the configuration, or "
        "prepare the dataset again",
        facts.source, kManifestFile, file);
  return std::max<std::int64_t>(column.max.value_or(0), 0) + 1;
}

void add(std::vector<std::string>& names, const std::vector<std::string>& more) {
  for (const std::string& name : more)
    if (!contains(names, name)) names.push_back(name);
}

std::vector<std::string> action_names(const TaskRequest& request) {
  std::vector<std::string> names = request.data.pools;
  add(names, request.features.actions);
  add(names, request.model.data_needs().actions);
  if (names.empty()) names = {"positive", "negative"};
  return names;
}

// The columns of events that are neither the user, the item, nor an attribute, nor computed from the time.
std::vector<std::string> context_names(const TaskRequest& request) {
  std::set<std::string> known{"user", "item", "hour", "weekday"}, names;
  for (const AttributeSection& attribute : request.features.attributes) known.insert(attribute.source());
  for (const ContextualFeature& feature : request.features.context)
    for (const std::string& key : feature.keys)
      if (!known.contains(key)) names.insert(key);
  const DataNeeds needs = request.model.data_needs();
  names.insert(needs.event_columns.begin(), needs.event_columns.end());
  names.insert(needs.label_columns.begin(), needs.label_columns.end());
  return {names.begin(), names.end()};
}

}  // namespace

std::int64_t DatasetFacts::rows_of_attribute(const std::string& name) const {
  if (name == kOwnId) return rows_of_file(*this, kItemFile);
  expect_column(manifest.attributes, name, "item attribute");
  return rows_of_file(*this, attribute_file(name));
}

std::int64_t DatasetFacts::rows_of(const std::string& key) const {
  if (key == "user") return rows_of_file(*this, kUserIdsFile);
  if (key == "item") return rows_of_file(*this, kItemFile);
  if (key == "hour") return 24;
  if (key == "weekday") return 7;
  if (contains(manifest.attributes, key)) return rows_of_attribute(key);
  expect_column(manifest.context, key, "context column");
  return rows_of_file(*this, context_file(key));
}

DatasetFacts facts_of(const Dataset& dataset) {
  DatasetFacts facts{dataset.folder().string(), dataset.manifest()};
  if (!dataset.user_ids().empty()) facts.manifest.columns[kUserIdsFile].max = dataset.user_ids().back();
  return facts;
}

DatasetFacts stated_facts(const TaskRequest& request) {
  DatasetFacts facts{"the configuration", {}};
  Manifest& manifest = facts.manifest;
  manifest.name = "assumed";
  std::uint8_t bit = 1;
  for (const std::string& name : action_names(request)) {
    manifest.actions.push_back({name, bit});
    bit = static_cast<std::uint8_t>(bit << 1);
  }
  manifest.label = manifest.actions.front().name;
  manifest.pools = request.data.pools.empty() ? action_names(request) : request.data.pools;
  manifest.context = context_names(request);
  const auto state = [&](const std::string& file, std::int64_t rows) {
    ColumnInfo& column = manifest.columns[file];
    column.count = 1;  // of unknown values, unless the rows are given
    if (rows > 0) column.max = rows - 1;
  };
  state(kUserIdsFile, 0);
  state(kItemFile, request.features.item_rows);
  for (const std::string& name : manifest.context) state(context_file(name), 0);
  for (const AttributeSection& attribute : request.features.attributes) {
    if (attribute.source() == kOwnId) continue;
    manifest.attributes.push_back(attribute.source());
    state(attribute_file(attribute.source()), attribute.rows);
  }
  return facts;
}

}  // namespace hstu
