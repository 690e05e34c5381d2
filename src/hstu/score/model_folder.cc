#include "hstu/score/model_folder.h"

#include <string>
#include <system_error>
#include <vector>

#include "hstu/base/checksum.h"
#include "hstu/base/error.h"
#include "hstu/base/folders.h"
#include "hstu/base/json_text.h"
#include "hstu/base/npy.h"
#include "hstu/base/version.h"
#include "hstu/dataset/json_field.h"
#include "hstu/dataset/manifest.h"
#include "hstu/run/folder.h"
#include "hstu/run/other_data.h"
#include "hstu/run/pruned.h"
#include "hstu/run/state.h"

namespace hstu {
namespace {

constexpr const char *kRemoved = ".removed_", *kFresh = ".fresh_";

// The columns of an export are few, and their values are features: all are compared with their checksums.
void verify_columns(const Path& dataset) {
  const Manifest manifest = read_manifest(dataset);
  for (const auto& [name, column] : manifest.columns) {
    const Path path = dataset / name;
    const MappedFile file(path);
    const std::string found =
        hstu::checksum(file.bytes().subspan(parse_npy_header(file.bytes(), path).data_offset));
    check(found == column.checksum,
          "{}: its checksum is {}, {} says {}: the file was altered; export the run again", path.string(),
          found, (dataset / kManifestFile).string(), column.checksum);
  }
}

// The fields that this program knows mean something else in an export of a later version.
void check_version(const Path& file) {
  const Json manifest = parse_json(read_file(file), file);
  const bool known = manifest.contains("version") && manifest["version"].is_number_integer() &&
                     manifest["version"].get<std::int64_t>() <= kExportVersion;
  check(known, "{}: version: expected a number up to {}, found {}: export the run with this program, {}",
        file.string(), kExportVersion, manifest.contains("version") ? manifest["version"].dump() : "none",
        version());
}

}  // namespace

bool is_export(const Path& path) {
  const ExportFolder folder{path};
  if (!std::filesystem::exists(folder.weights())) return false;  // no run has it
  const std::string file = folder.manifest().string();
  check(std::filesystem::exists(folder.manifest()), "{}: missing from an export: export the run again", file);
  const Json manifest = parse_json(read_file(folder.manifest()), folder.manifest());
  const std::string format = JsonField(manifest, file)["format"].text();
  check(format == kExportFormat, "{}: format: expected \"{}\", found \"{}\": export the run again", file,
        kExportFormat, format);
  return true;
}

void remove_export(const Path& path) {
  const Path removed = path.parent_path() / (kRemoved + path.filename().string());
  std::filesystem::remove_all(removed);  // of a killed process: a folder replaces no other that has files
  rename_and_sync(path, removed);
  std::filesystem::remove_all(removed);
}

Path fresh_export(const Path& path) {
  return path.parent_path() / (kFresh + path.filename().string());
}

void remove_unfinished(const Path& folder) {
  std::vector<Path> unfinished;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    if (name.starts_with(kRemoved) || name.starts_with(kFresh) ||
        (name.starts_with("step_") && name.ends_with(".partial")))
      unfinished.push_back(entry.path());
  }
  for (const Path& path : unfinished) std::filesystem::remove_all(path);
}

ModelFolder open_model_folder(const Path& named, const std::string& wanted) {
  // A link may name another export before all of this one is read.
  std::error_code error;
  const bool is_link = std::filesystem::is_symlink((named / "").parent_path(), error);
  const Path target = is_link ? std::filesystem::canonical(named, error) : named;
  const Path& path = error ? named : target;
  if (is_export(path)) {
    const ExportFolder folder{path};
    check_version(folder.manifest());
    Checkpoint checkpoint(folder.weights());
    verify_columns(folder.dataset());
    if (!wanted.empty() && wanted != std::to_string(checkpoint.step()))
      fail_usage("{} is an export of step {}, and has no checkpoint {}", path.string(), checkpoint.step(),
                 wanted);
    RunOptions options =
        with_table_rows(load_config<RunOptions>(folder.config(), {}, UnreadKeys::taken), checkpoint);
    options.data.path = folder.dataset();
    options.model.options().open_export(path);
    return {std::move(options), std::move(checkpoint), false};
  }
  const RunFolder folder = open_run_folder(path);
  return read_checkpoint(folder.checkpoints(), wanted, [&](const Path& newest) {
    Checkpoint checkpoint(newest);
    RunOptions options = with_table_rows(read_run_options(folder), checkpoint);
    return ModelFolder{std::move(options), std::move(checkpoint), true};
  });
}

}  // namespace hstu
