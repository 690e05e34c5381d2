#include "hstu/checkpoint/checkpoint_folder.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <set>
#include <string_view>
#include <system_error>

#include <fcntl.h>

#include "hstu/base/error.h"
#include "hstu/base/faults.h"
#include "hstu/base/folders.h"
#include "hstu/checkpoint/manifest.h"

namespace hstu {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step_";
constexpr std::string_view kOld = ".old";

std::optional<std::int64_t> step_of(const std::string& name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  std::int64_t step = -1;
  const char* end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data() + kPrefix.size(), end, step);
  if (error != std::errc{} || rest != end || step < 0 || checkpoint_name(step) != name) return std::nullopt;
  return step;
}

// Renames the folder before removing it: an interrupted removal leaves no torn checkpoint.
void remove_folder(const Path& path) {
  const Path old = path.string() + std::string(kOld);
  std::error_code error;
  fs::remove_all(old, error);
  rename_and_sync(path, old);
  fault_point("save.removal");
  fs::remove_all(old, error);
  if (error) fail("cannot remove {}: {}", old.string(), error.message());
}

}  // namespace

std::string checkpoint_name(std::int64_t step) {
  return fmt::format("{}{:08d}", kPrefix, step);
}

std::vector<CheckpointEntry> list_checkpoints(const Path& folder) {
  std::vector<CheckpointEntry> entries;
  if (!fs::is_directory(folder)) return entries;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const auto step = step_of(entry.path().filename().string());
    if (step && entry.is_directory()) entries.push_back({*step, entry.path()});
  }
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.step < b.step; });
  return entries;
}

std::optional<CheckpointEntry> latest_checkpoint(const Path& folder) {
  auto entries = list_checkpoints(folder);
  if (entries.empty()) return std::nullopt;
  return entries.back();
}

void set_link(const Path& folder, const char* name, const Path& checkpoint) {
  const Path link = folder / name, temporary = link.string() + ".partial";
  std::error_code error;
  fs::remove(temporary, error);
  fs::create_symlink(checkpoint.filename(), temporary, error);
  if (error) fail("cannot create the link {}: {}", temporary.string(), error.message());
  rename_and_sync(temporary, link);
}

void remove_link(const Path& folder, const char* name) {
  std::error_code error;
  if (fs::is_symlink(folder / name, error)) fs::remove(folder / name, error);
  if (error && error != std::errc::no_such_file_or_directory)
    fail("cannot remove the link {}: {}", (folder / name).string(), error.message());
}

std::optional<CheckpointEntry> linked_checkpoint(const Path& folder, const char* name) {
  std::error_code error;
  const Path target = fs::read_symlink(folder / name, error);
  if (error) return std::nullopt;
  for (const CheckpointEntry& entry : list_checkpoints(folder))
    if (entry.path.filename() == target) return entry;
  return std::nullopt;
}

void clear_leftovers(const Path& folder) {
  if (!fs::is_directory(folder)) return;
  std::vector<Path> leftovers;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string extension = entry.path().extension().string();
    const Path stem = entry.path().stem();
    const bool ours = stem == kCurrentLink || stem == kBestLink || step_of(stem.string());
    if (ours && (extension == ".partial" || extension == ".new" || extension == kOld))
      leftovers.push_back(entry.path());
  }
  for (const Path& path : leftovers) {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
}

void prune_checkpoints(const Path& folder, std::int64_t newest_step, std::int64_t keep,
                       std::int64_t best_step) {
  if (keep <= 0) return;
  auto entries = list_checkpoints(folder);
  std::set<std::int64_t> kept;
  std::int64_t newest = 0;
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    const bool later = entry->step > newest_step;
    if (!later && newest++ >= keep && entry->step != best_step) continue;
    kept.insert(entry->step);
    if (!fs::exists(entry->path / kManifestName)) continue;
    if (const auto base = read_checkpoint_manifest(entry->path).base) kept.insert(base->step);
  }
  for (const CheckpointEntry& entry : entries)
    if (!kept.contains(entry.step)) remove_folder(entry.path);
}

void replace_folder(const Path& replacement, const Path& path) {
  if (::renameat2(AT_FDCWD, replacement.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE) != 0) {
    const Path old = path.string() + std::string(kOld);
    std::error_code ignored;
    fs::remove_all(old, ignored);
    rename_and_sync(path, old);
    rename_and_sync(replacement, path);
    fs::remove_all(old, ignored);
    return;
  }
  sync_folder(path.parent_path());
  std::error_code error;
  fs::remove_all(replacement, error);  // It now contains the old content.
  if (error) fail("cannot remove {}: {}", replacement.string(), error.message());
}

}  // namespace hstu
