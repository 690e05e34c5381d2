#include "hstu/training/run_folder.h"

namespace hstu {

RunFolder create_run_folder(const Path& path, const RunOptions& options) {
  if (std::filesystem::exists(path)) {
    fail_usage(
        "the output folder {} exists already: choose another name, or go on with that run by "
        "hstu train --resume {}",
        path.string(), path.string());
  }
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) fail("cannot create the folder {}: {}", path.string(), error.message());
  RunFolder folder{path};
  write_file(folder.config(), to_toml(options));
  return folder;
}

RunFolder open_run_folder(const Path& path) {
  RunFolder folder{path};
  if (!std::filesystem::exists(folder.config())) {
    fail_usage("{} is not a run: it has no config.toml; a run is the --output of hstu train", path.string());
  }
  return folder;
}

RunOptions read_run_options(const RunFolder& folder) {
  return load_config<RunOptions>(folder.config());
}

}  // namespace hstu
