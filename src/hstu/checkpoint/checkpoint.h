// Checkpoints: everything that training needs to go on, written whole or not at all. docs/checkpoint.md
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include <nlohmann/json.hpp>

#include "hstu/base/files.h"
#include "hstu/checkpoint/checkpoint_folder.h"
#include "hstu/checkpoint/manifest.h"
#include "hstu/embedding/table_set.h"
#include "hstu/optimizer/dense_optimizer.h"
#include "hstu/tensor/parameter.h"

namespace hstu {

// Writes folder/step_<step>/ and returns its path. `state` is the caller's: counters, data position, metrics;
// it comes back from Checkpoint::state() unchanged. A checkpoint of the same step is replaced. The bytes are
// a pure function of the content. `before_rename` is called when everything is on the disk but the name: what
// it writes there stands whenever the checkpoint does. Throws Error naming the file that could not be
// written, or what `before_rename` threw; whatever stood in `folder` before stands there still.
Path save_checkpoint(const Path& folder, std::int64_t step, const NamedTensors& parameters,
                     const DenseOptimizer& optimizer, const TableSet& tables, const nlohmann::json& state,
                     const std::function<void()>& before_rename = {});

// A checkpoint on disk. The constructor reads and checks every byte; a torn or altered file, one missing or
// one too many throws Error naming it and, when another checkpoint stands beside this one, that one.
class Checkpoint {
 public:
  explicit Checkpoint(Path path);

  std::int64_t step() const { return manifest_.step; }
  const nlohmann::json& state() const { return manifest_.state; }
  const CheckpointManifest& manifest() const { return manifest_; }
  const Path& path() const { return path_; }  // of the folder itself, also when opened by a link to it

  // Each fills what it is given and throws Error, before touching it, when names, shapes or types differ from
  // those saved.
  void load(const NamedTensors& parameters) const;
  void load(DenseOptimizer& optimizer) const;
  void load(TableSet& tables) const;  // the tables must be empty

  // The safetensors files of the dense parameters and of a table, for readers of another model.
  Path dense_file() const;
  Path table_file(const std::string& table) const;

 private:
  Path path_;
  CheckpointManifest manifest_;
};

}  // namespace hstu
