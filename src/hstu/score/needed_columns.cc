#include "hstu/score/needed_columns.h"

#include <algorithm>

namespace hstu {

namespace {

std::vector<bool> context_of_features(const RunOptions& options, const Manifest& manifest) {
  std::vector<bool> needed;
  needed.reserve(manifest.context.size());
  for (const std::string& name : manifest.context) {
    const auto& features = options.features.context;
    needed.push_back(std::any_of(features.begin(), features.end(), [&](const ContextualFeature& feature) {
      return std::find(feature.keys.begin(), feature.keys.end(), name) != feature.keys.end();
    }));
  }
  return needed;
}

}  // namespace

std::vector<bool> context_of_requests(const RunOptions& options, const Manifest& manifest) {
  if (options.model.options().data_needs().user_contexts)
    return std::vector<bool>(manifest.context.size(), false);
  return context_of_features(options, manifest);
}

std::vector<bool> context_of_events(const RunOptions& options, const Manifest& manifest) {
  const DataNeeds needs = options.model.options().data_needs();
  if (needs.user_contexts) return context_of_features(options, manifest);
  const std::vector<std::string>& read = needs.event_columns;
  std::vector<bool> needed;
  needed.reserve(manifest.context.size());
  for (const std::string& name : manifest.context)
    needed.push_back(std::find(read.begin(), read.end(), name) != read.end());
  return needed;
}

}  // namespace hstu
