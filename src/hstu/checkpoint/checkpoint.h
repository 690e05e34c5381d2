// Checkpoints: the complete state that training needs to continue, written atomically. docs/checkpoint.md
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
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
// unchanged. `base`: sections may keep only what changed since this whole checkpoint, which then belongs to
// the new one.
struct CheckpointBase {
  CheckpointLayer layer;
  std::int64_t increments = 0;  // CheckpointLink::increments of the new checkpoint
  Path folder = {};             // CheckpointLink::folder, of a base elsewhere
};
Path save_checkpoint(const Path& folder, std::int64_t step, std::span<const Section> sections,
                     const nlohmann::json& state, const std::function<void()>& before_rename = {},
                     const std::optional<CheckpointBase>& base = std::nullopt);

// A checkpoint on disk. The constructor reads and checks every byte and every value, of its base too. It
// throws Error naming the torn, altered, missing or extra file, or the NaN or infinity, and another good
// checkpoint of the same folder, if one exists.
class Checkpoint {
 public:
  explicit Checkpoint(Path path);

  std::int64_t step() const { return layer_.manifest.step; }
  const nlohmann::json& state() const { return layer_.manifest.state; }
  const CheckpointManifest& manifest() const { return layer_.manifest; }
  const Path& path() const { return layer_.path; }  // of the folder itself, also if opened through a link

  // Fills the sections in their order. Throws Error if a section does not fit or is missing, or if a file
  // belongs to no section; the sections before the error are then filled.
  void load(std::span<const Section> sections) const;

  const CheckpointLayer& layer() const { return layer_; }
  const CheckpointLayer* base() const { return base_.get(); }  // null: it is whole

  // Sections for readers of another model. Throws Error if there is no section of this name.
  bool has(const std::string& section) const { return SectionReader::exists(section, layer_.manifest); }
  SectionReader section(const std::string& name) const {
    return {layer_.path, name, layer_.manifest, base_.get()};
  }

 private:
  CheckpointLayer layer_;
  std::shared_ptr<const CheckpointLayer> base_;
};

}  // namespace hstu
