#include "hstu/checkpoint/checkpoint.h"

#include <set>
#include <string>
#include <system_error>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/base/faults.h"
#include "hstu/checkpoint/verify.h"

namespace hstu {
namespace {

namespace fs = std::filesystem;

// The newest other good checkpoint of the same folder.
std::optional<CheckpointEntry> neighbour_of(const Path& path) {
  auto entries = list_checkpoints(path.parent_path().empty() ? Path(".") : path.parent_path());
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    if (entry->path.filename() == path.filename()) continue;
    try {
      verify_checkpoint(entry->path, read_checkpoint_manifest(entry->path));
      return *entry;
    } catch (const Error&) {
      continue;
    }
  }
  return std::nullopt;
}

}  // namespace

Path save_checkpoint(const Path& folder, std::int64_t step, std::span<const Section> sections,
                     const nlohmann::json& state, const std::function<void()>& before_rename) {
  Path path = folder / checkpoint_name(step);
  const bool replaces = fs::exists(path);
  const Path target = replaces ? Path(path.string() + ".new") : path;
  if (replaces) {
    std::error_code ignored;
    fs::remove_all(target, ignored);  // Left by an interrupted replacement.
  }
  StagedFolder staged(target);
  CheckpointManifest manifest{.step = step, .state = state, .tables = nlohmann::json::array(), .files = {}};
  for (const Section& section : sections) {
    SectionWriter writer(staged.path(), section.name, manifest);
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

Checkpoint::Checkpoint(Path path) : path_(std::move(path)) {
  if (path_.filename().empty()) path_ = path_.parent_path();  // "step_00000042/"
  std::error_code ignored;
  if (fs::is_symlink(path_, ignored) && fs::exists(path_)) path_ = fs::canonical(path_);  // "current"
  try {
    manifest_ = read_checkpoint_manifest(path_);
    verify_checkpoint(path_, manifest_);
  } catch (const Error& error) {
    const auto other = neighbour_of(path_);
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
    if (section.may_be_absent && !SectionReader::exists(section.name, manifest_)) continue;
    section.load(SectionReader(path_, section.name, manifest_));
  }
  for (const auto& [name, file] : manifest_.files) {
    check(files.contains(name), "{}: {} belongs to nothing in this model: the configuration changed",
          path_.string(), name);
  }
}

}  // namespace hstu
