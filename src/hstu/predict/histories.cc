#include "hstu/predict/histories.h"

#include <algorithm>
#include <string>

#include "hstu/base/error.h"
#include "hstu/predict/event_file.h"
#include "hstu/run/other_data.h"

namespace hstu {
namespace {

// The context columns that a model reads of the events of a history.
std::vector<bool> context_of_events(const RunOptions& options, const Manifest& manifest) {
  const std::vector<std::string> read = options.model.options().data_needs().event_columns;
  std::vector<bool> needed;
  needed.reserve(manifest.context.size());
  for (const std::string& name : manifest.context)
    needed.push_back(std::find(read.begin(), read.end(), name) != read.end());
  return needed;
}

}  // namespace

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

Histories::Histories(const ModelFolder& model, const Path& data, const Path& events,
                     const ColumnNames& columns, const Path& scratch) {
  if (!data.empty() && !events.empty())
    fail_usage("--data and --events both name the histories: leave one of them out");
  if (data.empty() && events.empty() && !model.has_events) {
    fail_usage(
        "an export has no events: name a dataset with the users' histories by --data, or a table of events "
        "by --events");
  }
  const Path& own = model.options.data.path;
  if (events.empty()) {
    dataset_.emplace(data.empty() ? own : data);
    check_readable(model.checkpoint, own, *dataset_);
    since_1970_ = counts_from_1970(dataset_->manifest());
    return;
  }
  const Dataset schema(own);
  written_.emplace(scratch);
  write_events(events, columns, schema, context_of_events(model.options, schema.manifest()),
               written_->path());
  dataset_.emplace(written_->path());
  since_1970_ = counts_from_1970(schema.manifest());
}

}  // namespace hstu
