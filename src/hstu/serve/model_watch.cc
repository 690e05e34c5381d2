#include "hstu/serve/model_watch.h"

#include <algorithm>
#include <exception>
#include <system_error>
#include <tuple>
#include <utility>

#include "hstu/base/clock.h"
#include "hstu/base/error.h"
#include "hstu/base/json_text.h"
#include "hstu/checkpoint/manifest.h"
#include "hstu/dataset/manifest.h"
#include "hstu/score/model_folder.h"

namespace hstu {
namespace {

constexpr const char* kCurrent = "current";

// Of a folder that may be removed at any moment: none.
std::optional<std::int64_t> step_of_export(const Path& folder) {
  try {
    if (!is_export(folder)) return std::nullopt;
    const Path manifest = ExportFolder{folder}.manifest();
    return parse_json(read_file(manifest), manifest).at("step").get<std::int64_t>();
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace

std::optional<Path> published_export(const Path& folder) {
  std::error_code error;
  if (std::filesystem::is_symlink(folder / kCurrent, error)) {
    const Path target = std::filesystem::canonical(folder / kCurrent, error);
    return error ? std::nullopt : std::optional(target);
  }
  std::optional<std::tuple<std::int64_t, Path>> best;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const auto step = step_of_export(entry->path());
    if (step && (!best || std::tuple(*step, entry->path()) > *best)) best = {*step, entry->path()};
  }
  if (!best) return std::nullopt;
  const Path path = std::filesystem::canonical(std::get<Path>(*best), error);
  return error ? std::nullopt : std::optional(path);
}

PublishedExport export_at(const Path& path) {
  std::error_code error;
  PublishedExport found{.path = std::filesystem::canonical(path, error)};
  if (error) found.path = path;
  const ExportFolder folder{found.path};
  const Path files[] = {folder.manifest(), folder.config(), folder.weights() / kManifestName,
                        folder.dataset() / kManifestFile};
  for (std::size_t f = 0; f < found.written.size(); ++f)
    found.written[f] = std::filesystem::last_write_time(files[f], error);
  return found;
}

ModelWatch::ModelWatch(const Path& folder, const PublishedExport& first, double seconds,
                       std::function<bool(const Path&)> changed)
    : thread_([this, folder, seconds, changed = std::move(changed), known = first]() mutable {
        Clock::time_point looked = Clock::now();
        double pause = seconds;
        while (!ends_) {
          std::this_thread::sleep_for(std::chrono::milliseconds(20));
          if (seconds_since(looked) < pause) continue;
          looked = Clock::now();
          pause = seconds;
          try {
            const std::optional<Path> path = published_export(folder);
            if (!path) continue;
            const PublishedExport found = export_at(*path);
            if (found == known) continue;
            if (changed(found.path))
              known = found;
            else
              pause = std::max(seconds, 10 * seconds_since(looked));
          } catch (const std::exception&) {  // no memory: the next look may have it
          }
        }
      }) {}

ModelWatch::~ModelWatch() {
  ends_ = true;
  thread_.join();
}

}  // namespace hstu
