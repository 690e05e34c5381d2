#include "hstu/comparison/planned_run.h"

#include "hstu/base/error.h"
#include "hstu/comparison/run_outcome.h"
#include "hstu/config/config_difference.h"

namespace hstu {
namespace {

// Keys whose values a run changes when it begins: what "auto" chose, a path made absolute.
ConfigFlattener::Values comparable(RunOptions options, const RunOptions& wanted) {
  if (wanted.device == "auto") options.device = "auto";
  options.data.path = std::filesystem::weakly_canonical(options.data.path);
  options.model.options().settle();
  return config_values(options);
}

}  // namespace

RunProgress state_of(const PlannedRun& run, const Path& folder) {
  const RunFolder known{folder};
  if (!std::filesystem::exists(folder) ||
      (std::filesystem::is_directory(folder) && std::filesystem::is_empty(folder)))
    return RunProgress::missing;
  const auto changed = differences(comparable(read_run_options(open_run_folder(folder)), run.options),
                                   comparable(run.options, run.options));
  if (!changed.empty()) {
    fail_usage("{} is a run with another {} ({} there, {} here): choose another --output, or remove it",
               folder.string(), changed.front().key, changed.front().before, changed.front().after);
  }
  if (!std::filesystem::exists(known.metrics())) return RunProgress::begun;
  return read_run(folder, run.name).outcome.ended() ? RunProgress::ended : RunProgress::begun;
}

}  // namespace hstu
