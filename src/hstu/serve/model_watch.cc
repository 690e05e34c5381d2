#include "hstu/serve/model_watch.h"

#include <system_error>
#include <tuple>
#include <utility>

#include "hstu/base/clock.h"
#include "hstu/base/error.h"
#include "hstu/base/json_text.h"
#include "hstu/base/terminal.h"
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

// Another export may get the name of one that is gone.
std::filesystem::file_time_type written_at(const Path& path) {
  std::error_code ignored;
  return std::filesystem::last_write_time(ExportFolder{path}.manifest(), ignored);
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

ModelWatch::ModelWatch(const Path& folder, const Path& first, double seconds,
                       std::function<void(const Path&)> changed)
    : thread_([this, folder, seconds, changed = std::move(changed), known = first,
               written = written_at(first)]() mutable {
        Clock::time_point looked = Clock::now();
        while (!ends_) {
          std::this_thread::sleep_for(std::chrono::milliseconds(20));
          if (seconds_since(looked) < seconds) continue;
          looked = Clock::now();
          const std::optional<Path> found = published_export(folder);
          if (!found || (*found == known && written_at(*found) == written)) continue;
          known = *found;
          written = written_at(known);
          changed(known);
        }
      }) {}

ModelWatch::~ModelWatch() {
  ends_ = true;
  thread_.join();
}

}  // namespace hstu
