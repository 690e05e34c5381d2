#include "hstu/predict/model_folder.h"

#include "hstu/base/error.h"
#include "hstu/base/json_text.h"
#include "hstu/run/folder.h"
#include "hstu/run/other_data.h"
#include "hstu/run/state.h"

namespace hstu {

bool is_export(const Path& path) {
  const ExportFolder folder{path};
  if (!std::filesystem::exists(folder.manifest()) || !std::filesystem::exists(folder.weights())) return false;
  const Json manifest = parse_json(read_file(folder.manifest()), folder.manifest());
  return manifest.is_object() && manifest.contains("format") && manifest["format"] == kExportFormat;
}

ModelFolder open_model_folder(const Path& path, const std::string& wanted) {
  if (is_export(path)) {
    const ExportFolder folder{path};
    Checkpoint checkpoint(folder.weights());
    if (!wanted.empty() && wanted != std::to_string(checkpoint.step()))
      fail_usage("{} is an export of step {}, and has no checkpoint {}", path.string(), checkpoint.step(),
                 wanted);
    RunOptions options = with_table_rows(load_config<RunOptions>(folder.config()), checkpoint);
    options.data.path = folder.dataset();
    return {std::move(options), std::move(checkpoint), false};
  }
  const RunFolder folder = open_run_folder(path);
  Checkpoint checkpoint(find_checkpoint(folder.checkpoints(), wanted));
  RunOptions options = with_table_rows(read_run_options(folder), checkpoint);
  return {std::move(options), std::move(checkpoint), true};
}

}  // namespace hstu
