#include "hstu/task/features.h"

namespace hstu {

SampleFeatures sample_features(const TaskRequest& request, const DatasetFacts& facts) {
  const FeaturesSection& features = request.features;
  SampleFeatures all;
  all.item = {"item", features.item_rows > 0 ? features.item_rows : facts.rows_of("item")};
  for (const AttributeSection& a : features.attributes)
    all.attributes.push_back({a.name, a.rows > 0 ? a.rows : facts.rows_of_attribute(a.source())});
  for (const ContextualFeature& c : features.context) {
    const bool open = c.rows == 0 && !c.hashed && c.keys.size() == 1;
    all.context.push_back({c.name, open ? facts.rows_of(c.keys.front()) : c.rows});
  }
  return all;
}

DataOptions data_options(const TaskRequest& request) {
  DataOptions data = request.data;
  for (const AttributeSection& a : request.features.attributes) data.attributes.push_back(a.source());
  data.contextual = request.features.context;
  return data;
}

}  // namespace hstu
