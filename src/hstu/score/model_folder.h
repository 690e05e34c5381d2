// A trained model on disk, wherever it came from: the folder of a run, or what `hstu export` wrote.
#pragma once

#include <cstdint>
#include <string>

#include "hstu/base/files.h"
#include "hstu/checkpoint/checkpoint.h"
#include "hstu/options/options.h"

namespace hstu {

// The folders and files of an export. docs/predict.md
struct ExportFolder {
  Path path;

  Path manifest() const { return path / "manifest.json"; }
  Path config() const { return path / "model.toml"; }
  Path weights() const { return path / "weights"; }  // a checkpoint without optimizer
  Path dataset() const { return path / "dataset"; }  // without events: actions, columns, attributes
};
inline constexpr const char* kExportFormat = "hstu-export";
inline constexpr int kExportVersion = 1;  // that this program writes, and the newest that it reads

// Throws Error naming the manifest of an export that is missing or damaged: such a folder is no run either.
bool is_export(const Path& path);

// An export loses its name before its files, so that it is never half of one.
void remove_export(const Path& path);

// Where an export is made that replaces the one at `path`.
Path fresh_export(const Path& path);

// Removes the files of exports in `folder` whose making or removal was interrupted; nobody may be making any.
void remove_unfinished(const Path& folder);

struct ModelFolder {
  RunOptions options;  // data.path is a dataset; the rows of all tables are given
  Checkpoint checkpoint;
  bool has_events = true;  // false: the dataset of an export only describes columns
};

// Opens a run at a checkpoint (a step, "best", or "": the newest), or an export. Throws UsageError if `path`
// is neither, or is an export and `checkpoint` not the step of its own.
ModelFolder open_model_folder(const Path& path, const std::string& checkpoint = "");

}  // namespace hstu
