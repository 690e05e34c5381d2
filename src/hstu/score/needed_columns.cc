#include "hstu/score/needed_columns.h"

#include <algorithm>

#include "hstu/base/contains.h"

namespace hstu {

namespace {

std::vector<bool> context_of_features(const RunOptions& options, const Manifest& manifest) {
  std::vector<bool> needed;
  needed.reserve(manifest.context.size());
  for (const std::string& name : manifest.context) {
    const auto& features = options.features.context;
    needed.push_back(std::any_of(features.begin(), features.end(), [&](const ContextualFeature& feature) {
      return contains(feature.keys, name);
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
  for (const std::string& name : manifest.context) needed.push_back(contains(read, name));
  return needed;
}

}  // namespace hstu
