#include "hstu/checkpoint/checkpoint.h"

#include <set>
#include <string>
#include <system_error>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/base/faults.h"
#include "hstu/base/json_text.h"
#include "hstu/checkpoint/verify.h"

namespace hstu {
namespace {

namespace fs = std::filesystem;

// What the checkpoint at `path` continues, read and checked. Null: it is whole.
std::shared_ptr<const CheckpointLayer> base_of(const Path& path, const CheckpointManifest& manifest) {
  if (!manifest.base) return nullptr;
  const Path base = manifest.base->folder.empty() ? path.parent_path() / checkpoint_name(manifest.base->step)
                                                  : (path / manifest.base->folder).lexically_normal();
  try {
    CheckpointLayer layer{base, read_checkpoint_manifest(base)};
    check(layer.manifest.identity() == manifest.base->checksum, "{} is another checkpoint of that step",
          base.string());
    verify_checkpoint(base, layer.manifest);
    return std::make_shared<const CheckpointLayer>(std::move(layer));
  } catch (const Error& error) {
    fail(
        "{} has only what changed in tables since step {}, and the checkpoint of that step cannot be used: "
        "{}",
        path.string(), manifest.base->step, error.what());
  }
}

// The newest other good checkpoint of the same folder.
std::optional<CheckpointEntry> neighbour_of(const Path& path) {
  auto entries = list_checkpoints(path.parent_path().empty() ? Path(".") : path.parent_path());
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    if (entry->path.filename() == path.filename()) continue;
    try {
      const CheckpointManifest manifest = read_checkpoint_manifest(entry->path);
      verify_checkpoint(entry->path, manifest);
      base_of(entry->path, manifest);
      return *entry;
    } catch (const Error&) {
      continue;
    }
  }
  return std::nullopt;
}

}  // namespace

Path save_checkpoint(const Path& folder, std::int64_t step, std::span<const Section> sections,
                     const nlohmann::json& state, const std::function<void()>& before_rename,
                     const std::optional<CheckpointBase>& base) {
  Path path = folder / checkpoint_name(step);
  const bool replaces = fs::exists(path);
  const Path target = replaces ? Path(path.string() + ".new") : path;
  if (replaces) {
    std::error_code ignored;
    fs::remove_all(target, ignored);  // Left by an interrupted replacement.
  }
  StagedFolder staged(target);
  CheckpointManifest manifest{.step = step, .state = state, .tables = nlohmann::json::array(), .files = {}};
  const CheckpointLayer* const layer = base ? &base->layer : nullptr;
  if (base)
    manifest.base = {layer->manifest.step, layer->manifest.identity(), base->increments, base->folder};
  for (const Section& section : sections) {
    SectionWriter writer(staged.path(), section.name, manifest, layer);
    section.save(writer);
    writer.close();
  }
  write_checkpoint_manifest(staged.path(), manifest);
  fault_point("save.staged");
  if (before_rename) before_rename();
  fault_point("save.rename");
  staged.commit();
  if (replaces) replace_folder(target, path);
  return path;
}

Checkpoint::Checkpoint(Path path) {
  if (path.filename().empty()) path = path.parent_path();  // "step_00000042/"
  std::error_code ignored;
  if (fs::is_symlink(path, ignored) && fs::exists(path)) path = fs::canonical(path);  // "current"
  layer_.path = std::move(path);
  try {
    layer_.manifest = read_checkpoint_manifest(layer_.path);
    verify_checkpoint(layer_.path, layer_.manifest);
    base_ = base_of(layer_.path, layer_.manifest);
  } catch (const Error& error) {
    const auto other = neighbour_of(layer_.path);
    fail("{}{}", error.what(),
         other ? fmt::format("; {0} is good: use step {1} (hstu train --from-step {1}, hstu eval "
                             "--checkpoint {1})",
                             other->path.string(), other->step)
               : "");
  }
}

void Checkpoint::load(std::span<const Section> sections) const {
  std::set<std::string> files;
  for (const Section& section : sections) {
    files.insert(section_file(section.name));
    if (section.may_be_absent && !has(section.name)) continue;
    try {
      section.load(this->section(section.name));
    } catch (const nlohmann::json::exception& error) {
      fail("{}: {}: its description was altered: {}", path().string(), section.name, json_problem(error));
    }
  }
  for (const auto& [name, file] : layer_.manifest.files) {
    check(files.contains(name), "{}: {} belongs to nothing in this model: the configuration changed",
          path().string(), name);
  }
}

}  // namespace hstu
