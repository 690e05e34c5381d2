#include "hstu/predict/publish.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "hstu/base/clock.h"
#include "hstu/base/error.h"
#include "hstu/base/file_lock.h"
#include "hstu/base/json_text.h"
#include "hstu/base/terminal.h"
#include "hstu/checkpoint/checkpoint.h"
#include "hstu/predict/export.h"
#include "hstu/run/folder.h"
#include "hstu/run/pruned.h"
#include "hstu/run/state.h"
#include "hstu/score/model_folder.h"

namespace hstu {
namespace {

constexpr const char* kPrefix = "step_";
constexpr const char* kRemoved = ".removed_";
constexpr const char* kCurrent = "current";

// What names a checkpoint of a run.
struct Source {
  std::int64_t step = -1;
  std::string identity;
  bool operator==(const Source&) const = default;
};

Source source_of(const PublishOptions& options) {
  return read_checkpoint(open_run_folder(options.run).checkpoints(), options.checkpoint,
                         [](const Path& path) {
                           const CheckpointManifest manifest = read_checkpoint_manifest(path);
                           return Source{manifest.step, manifest.identity()};
                         });
}

// Of an export that publish() made.
Source source_of_export(const Path& path) {
  const Json manifest = parse_json(read_file(ExportFolder{path}.manifest()), ExportFolder{path}.manifest());
  return {manifest.value("step", std::int64_t{-1}), manifest.value("source", "")};
}

std::optional<CheckpointLink> link_of(const Path& path) {
  return read_checkpoint_manifest(ExportFolder{path}.weights()).base;
}

// The export beside `path` that it has only the changes since.
std::optional<Path> base_of(const Path& path) {
  const std::optional<CheckpointLink> link = link_of(path);
  if (!link) return std::nullopt;
  return path.parent_path() / link->folder.parent_path().filename();  // "../../step_00000004/weights"
}

std::string name_of(std::int64_t step) {
  return fmt::format("{}{:08}", kPrefix, step);
}

// Ascending: names of more digits are later.
std::vector<Path> exports_in(const Path& folder) {
  std::vector<Path> exports;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().filename().string().starts_with(kPrefix) && is_export(entry.path()))
      exports.push_back(entry.path());
  std::sort(exports.begin(), exports.end(), [](const Path& a, const Path& b) {
    const std::string x = a.filename(), y = b.filename();
    return x.size() != y.size() ? x.size() < y.size() : x < y;
  });
  return exports;
}

// A link of another name takes the place of `current` at once.
void set_current(const Path& folder, const std::string& name) {
  const Path fresh = folder / ".current";
  std::filesystem::remove(fresh);
  std::filesystem::create_directory_symlink(name, fresh);
  std::filesystem::rename(fresh, folder / kCurrent);
  sync_folder(folder);
}

// An export loses its name before its files, so that it is never half of one.
void remove_export(const Path& path) {
  const Path removed = path.parent_path() / (kRemoved + path.filename().string());
  std::filesystem::rename(path, removed);
  std::filesystem::remove_all(removed);
}

void remove_older(const Path& folder, const Path& current, std::int64_t keep) {
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().filename().string().starts_with(kRemoved)) std::filesystem::remove_all(entry.path());
  std::vector<Path> exports = exports_in(folder);
  std::set<Path> kept{current};
  for (auto newest = exports.rbegin(); newest != exports.rend() && std::ssize(kept) < keep; ++newest)
    kept.insert(*newest);
  for (const Path& path : std::set<Path>(kept))
    if (const auto base = base_of(path)) kept.insert(*base);
  for (const Path& path : exports)
    if (!kept.contains(path)) remove_export(path);
}

// The base of the next export, if it is not to be whole.
void choose_base(const PublishOptions& options, ExportOptions& next) {
  const std::vector<Path> exports = exports_in(options.to);
  if (exports.empty()) return;
  const std::optional<CheckpointLink> link = link_of(exports.back());
  const std::int64_t increments = link ? link->increments + 1 : 1;
  if (increments >= options.full_every) return;
  next.increments = increments;
  next.base = link ? *base_of(exports.back()) : exports.back();
}

// What was published of a run that went back, or of another run.
void remove_other(const Path& folder, const Path& path, const Source& source) {
  if (!is_export(path)) return;
  const Source found = source_of_export(path);
  if (found.identity.empty() || found == source) return;  // earlier versions did not name it
  print_note("{}: was of another checkpoint of this step: it is replaced\n", path.string());
  for (const Path& other : exports_in(folder))
    if (base_of(other) == path) remove_export(other);
  remove_export(path);
}

}  // namespace

void check_publication(const Path& folder, const char* key) {
  namespace fs = std::filesystem;
  if (folder.string().starts_with("s3://"))
    fail_usage("{} {}: exports are published to a folder: mount the bucket, or copy the folder to it", key,
               folder.string());
  if (fs::exists(folder) && !fs::is_directory(folder))
    fail_usage("{} {}: expected a folder, or a name for a new one, found a file", key, folder.string());
  const fs::file_status current = fs::symlink_status(folder / kCurrent);
  if (fs::exists(current) && !fs::is_symlink(current))
    fail_usage("{}: expected a link or nothing: name a folder by {} that hstu publish made",
               (folder / kCurrent).string(), key);
}

Path publish(const PublishOptions& options) {
  open_run_folder(options.run);  // before anything is made
  check_publication(options.to, "--to");
  std::filesystem::create_directories(options.to);
  const FileLock lock(options.to / ".lock");
  if (!lock.held())
    fail_usage("{}: another process publishes there: wait for its end, or name another folder",
               options.to.string());
  const Source source = source_of(options);
  Path path = options.to / name_of(source.step);
  remove_other(options.to, path, source);
  if (!is_export(path)) {
    ExportOptions next{.run = options.run,
                       .output = path,
                       .checkpoint = options.checkpoint == "best" ? "best" : std::to_string(source.step),
                       .data = options.data};
    choose_base(options, next);
    export_model(next);
  }
  set_current(options.to, path.filename());
  remove_older(options.to, path, options.keep);
  return path;
}

void follow_run(const PublishOptions& options, double seconds, const std::atomic<bool>& stop,
                const std::function<void(const Path&)>& published) {
  Source last;
  while (!stop) {
    const Clock::time_point looked = Clock::now();
    if (Source newest = source_of(options); newest != last) {
      published(publish(options));
      last = std::move(newest);
    }
    while (!stop && seconds_since(looked) < seconds)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace hstu
