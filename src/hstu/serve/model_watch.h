// Finds the model that a folder publishes.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "hstu/base/files.h"

namespace hstu {

// The export that `folder` publishes: what its entry `current` links to, or else its export of the highest
// step, of equal steps the last by name. None: it has no export.
std::optional<Path> published_export(const Path& folder);

// Looks into a folder again and again, in a thread of its own.
class ModelWatch {
 public:
  // Calls changed(path) for an export that is published when it is not the one of the call before; `first`:
  // the one that is known. Looks again after `seconds`. `changed` must not throw.
  ModelWatch(const Path& folder, const Path& first, double seconds, std::function<void(const Path&)> changed);
  ~ModelWatch();
  ModelWatch(const ModelWatch&) = delete;
  ModelWatch& operator=(const ModelWatch&) = delete;

 private:
  std::atomic<bool> ends_ = false;
  std::thread thread_;
};

}  // namespace hstu
