#include "hstu/score/needed_columns.h"

#include <algorithm>

namespace hstu {

std::vector<bool> context_of_requests(const RunOptions& options, const Manifest& manifest) {
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

std::vector<bool> context_of_events(const RunOptions& options, const Manifest& manifest) {
  const std::vector<std::string> read = options.model.options().data_needs().event_columns;
  std::vector<bool> needed;
  needed.reserve(manifest.context.size());
  for (const std::string& name : manifest.context)
    needed.push_back(std::find(read.begin(), read.end(), name) != read.end());
  return needed;
}

}  // namespace hstu
