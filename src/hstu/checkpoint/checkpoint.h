// Checkpoints: everything that training needs to go on, written whole or not at all. docs/checkpoint.md
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
// Checkpoint::state() returns unchanged; descriptions of sections are added under their names. A checkpoint
// of the same step is replaced. The bytes are a pure function of the content. `before_rename` is called when
// everything but the name is on the disk. Throws Error naming the file that could not be written,
// NotFiniteError from a section, or what `before_rename` threw; earlier checkpoints in `folder` are then
// unchanged.
Path save_checkpoint(const Path& folder, std::int64_t step, std::span<const Section> sections,
                     const nlohmann::json& state, const std::function<void()>& before_rename = {});

// A checkpoint on disk. The constructor reads and checks every byte and every value: a torn or altered file,
// one missing or one too many, a NaN or an infinity throws Error naming it and, when a good checkpoint is
// beside this one, that one.
class Checkpoint {
 public:
  explicit Checkpoint(Path path);

  std::int64_t step() const { return manifest_.step; }
  const nlohmann::json& state() const { return manifest_.state; }
  const CheckpointManifest& manifest() const { return manifest_; }
  const Path& path() const { return path_; }  // of the folder itself, also when opened by a link to it

  // Fills the sections in their order. Throws Error when a section does not fit, is missing, or when there is
  // a file that belongs to none of them; sections before that one are filled then.
  void load(std::span<const Section> sections) const;

  // The safetensors file of a section, for readers of another model.
  Path file(const std::string& section) const { return path_ / section_file(section); }

 private:
  Path path_;
  CheckpointManifest manifest_;
};

}  // namespace hstu
