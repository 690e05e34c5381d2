#include "hstu/predict/publish.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "hstu/base/clock.h"
#include "hstu/base/error.h"
#include "hstu/base/file_lock.h"
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

std::int64_t step_of(const PublishOptions& options) {
  return read_checkpoint(open_run_folder(options.run).checkpoints(), options.checkpoint,
                         [](const Path& path) { return Checkpoint(path).step(); });
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

void check_place(const Path& folder) {
  namespace fs = std::filesystem;
  if (fs::exists(folder) && !fs::is_directory(folder))
    fail_usage("--to {}: expected a folder, or a name for a new one, found a file", folder.string());
  const fs::file_status current = fs::symlink_status(folder / kCurrent);
  if (fs::exists(current) && !fs::is_symlink(current))
    fail_usage("{}: expected a link or nothing: name a folder by --to that hstu publish made",
               (folder / kCurrent).string());
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
void remove_older(const Path& folder, const Path& current, std::int64_t keep) {
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().filename().string().starts_with(kRemoved)) std::filesystem::remove_all(entry.path());
  std::vector<Path> exports = exports_in(folder);
  std::erase(exports, current);
  for (std::int64_t i = 0; i + keep <= std::ssize(exports); ++i) {
    const Path& old = exports[static_cast<std::size_t>(i)];
    const Path removed = folder / (kRemoved + old.filename().string());
    std::filesystem::rename(old, removed);
    std::filesystem::remove_all(removed);
  }
}

}  // namespace

Path publish(const PublishOptions& options) {
  open_run_folder(options.run);  // before anything is made
  check_place(options.to);
  std::filesystem::create_directories(options.to);
  const FileLock lock(options.to / ".lock");
  if (!lock.held())
    fail_usage("{}: another process publishes there: wait for its end, or name another folder",
               options.to.string());
  const std::int64_t step = step_of(options);
  Path path = options.to / name_of(step);
  if (!is_export(path))
    export_model({.run = options.run,
                  .output = path,
                  .checkpoint = options.checkpoint == "best" ? "best" : std::to_string(step),
                  .data = options.data});
  set_current(options.to, path.filename());
  remove_older(options.to, path, options.keep);
  return path;
}

void follow_run(const PublishOptions& options, double seconds, const std::atomic<bool>& stop,
                const std::function<void(const Path&)>& published) {
  std::int64_t last = -1;
  while (!stop) {
    const Clock::time_point looked = Clock::now();
    if (const std::int64_t step = step_of(options); step != last) {
      published(publish(options));
      last = step;
    }
    while (!stop && seconds_since(looked) < seconds)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace hstu
