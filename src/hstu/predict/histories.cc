#include "hstu/predict/histories.h"

#include "hstu/base/error.h"
#include "hstu/dataset/counted_times.h"
#include "hstu/predict/event_file.h"
#include "hstu/run/other_data.h"
#include "hstu/score/needed_columns.h"

namespace hstu {
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
  unknown_texts_ = write_events(events, columns, schema, context_of_events(model.options, schema.manifest()),
                                written_->path());
  dataset_.emplace(written_->path());
  since_1970_ = counts_from_1970(schema.manifest());
}

}  // namespace hstu
