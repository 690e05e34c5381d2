// Finds the model that a folder publishes.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "hstu/base/files.h"

namespace hstu {

// The export that `folder` publishes: what its entry `current` links to, or else its export of the highest
// step, of equal steps the last by name. None: it has no export.
std::optional<Path> published_export(const Path& folder);

// An export, and when the files that describe it were written: what is another one, or another one of the
// same name.
struct PublishedExport {
  Path path;
  std::array<std::filesystem::file_time_type, 4> written = {};
  bool operator==(const PublishedExport&) const = default;
};
// Of a path as it is, or of what it links to.
PublishedExport export_at(const Path& path);

// Looks into a folder again and again, in a thread of its own.
class ModelWatch {
 public:
  // Calls changed(path), which must not throw, for an export that is published and not known; `first` is
  // known, and so is one for which it returned true. Looks again after `seconds`, or after ten times as long
  // as a call took that returned false.
  ModelWatch(const Path& folder, const PublishedExport& first, double seconds,
             std::function<bool(const Path&)> changed);
  ~ModelWatch();
  ModelWatch(const ModelWatch&) = delete;
  ModelWatch& operator=(const ModelWatch&) = delete;

 private:
  std::atomic<bool> ends_ = false;
  std::thread thread_;
};

}  // namespace hstu
