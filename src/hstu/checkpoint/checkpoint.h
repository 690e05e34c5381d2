// Checkpoints: the complete state that training needs to continue, written atomically. docs/checkpoint.md
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include <nlohmann/json.hpp>

#include "hstu/base/files.h"
#include "hstu/checkpoint/checkpoint_folder.h"
#include "hstu/checkpoint/manifest.h"
#include "hstu/checkpoint/section.h"

namespace hstu {

// Writes folder/step_<step>/ and returns its path. `state`: the caller's own values, which
// Checkpoint::state() returns unchanged; descriptions of sections are added under their names. Replaces a
// checkpoint of the same step. The bytes are a pure function of the content. `before_rename` is called when
// everything but the name is on the disk. Throws Error naming the file that could not be written,
// NotFiniteError from a section, or what `before_rename` threw; earlier checkpoints in `folder` are then
// unchanged.
Path save_checkpoint(const Path& folder, std::int64_t step, std::span<const Section> sections,
                     const nlohmann::json& state, const std::function<void()>& before_rename = {});

// A checkpoint on disk. The constructor reads and checks every byte and every value. It throws Error naming
// the torn, altered, missing or extra file, or the NaN or infinity, and another good checkpoint of the same
// folder, if one exists.
class Checkpoint {
 public:
  explicit Checkpoint(Path path);

  std::int64_t step() const { return manifest_.step; }
  const nlohmann::json& state() const { return manifest_.state; }
  const CheckpointManifest& manifest() const { return manifest_; }
  const Path& path() const { return path_; }  // of the folder itself, also if opened through a link

  // Fills the sections in their order. Throws Error if a section does not fit or is missing, or if a file
  // belongs to no section; the sections before the error are then filled.
  void load(std::span<const Section> sections) const;

  // The safetensors file of a section, for readers of another model.
  Path file(const std::string& section) const { return path_ / section_file(section); }

 private:
  Path path_;
  CheckpointManifest manifest_;
};

}  // namespace hstu
