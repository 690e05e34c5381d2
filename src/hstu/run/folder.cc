#include "hstu/run/folder.h"

#include <filesystem>
#include <optional>
#include <system_error>
#include <vector>

namespace hstu {

RunFolder create_run_folder(const Path& path, const RunOptions& options) {
  // An empty folder is what a run may leave that was killed while it removed its own.
  std::error_code ignored;
  if (std::filesystem::is_directory(std::filesystem::symlink_status(path, ignored)))
    std::filesystem::remove(path, ignored);
  if (std::filesystem::exists(path)) {
    fail_usage(
        "the output folder {} already exists: choose another name, or continue that run with "
        "hstu train --resume {}",
        path.string(), path.string());
  }
  StagedFolder staged(path);
  write_file(RunFolder{staged.path()}.config(), to_toml(options));
  staged.commit();
  return {path};
}

void discard_run_folder(const RunFolder& folder) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (fs::exists(folder.checkpoints(), ignored) && !fs::is_empty(folder.checkpoints(), ignored)) return;
  std::vector<Path> files{folder.metrics(), folder.baseline(), folder.lock(), folder.checkpoints()};
  for (const auto& entry : fs::directory_iterator(folder.path, ignored)) {
    if (entry.path().filename().string().starts_with("events.out.tfevents.")) files.push_back(entry.path());
  }
  files.push_back(folder.config());  // until then it is a run, which can be resumed
  for (const Path& file : files) fs::remove(file, ignored);
  fs::remove(folder.path, ignored);  // fails if the folder contains anything else
}

RunFolder open_run_folder(const Path& path) {
  RunFolder folder{path};
  if (!std::filesystem::exists(folder.config())) {
    fail_usage("{} is not a run: it has no config.toml; a run is the --output of hstu train", path.string());
  }
  return folder;
}

RunFolder latest_run(const Path& place) {
  namespace fs = std::filesystem;
  std::optional<RunFolder> latest;
  fs::file_time_type newest;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(place, error)) {
    const RunFolder run{entry.path()};
    if (!fs::exists(run.config()) || entry.path().extension() == ".partial") continue;
    const auto written = fs::last_write_time(fs::exists(run.metrics()) ? run.metrics() : run.config(), error);
    if (error || (latest && written <= newest)) continue;
    latest = run;
    newest = written;
  }
  if (!latest) {
    fail_usage("there is no run in {}: name the folder that holds your runs by --runs, or the run itself",
               place.string());
  }
  return *latest;
}

RunOptions read_run_options(const RunFolder& folder) {
  return load_config<RunOptions>(folder.config(), {}, UnreadKeys::taken);
}

}  // namespace hstu
