// Publishes exports of a run in a folder that servers follow. docs/serving.md
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "hstu/base/files.h"

namespace hstu {

struct PublishOptions {
  Path run, to;
  std::string checkpoint = {};  // a step or "best"; "": the newest
  Path data = {};               // the run's dataset, when it has moved
  std::int64_t keep = 3;        // exports; older ones are removed, but never the current one
};

// Makes the export TO/step_STEP of the checkpoint unless it is there, lets the link TO/current name it, and
// removes older exports. A server sees the old export or the new one, whenever this is interrupted; calling
// it again finishes the work. Returns the export's path. Throws UsageError while another process publishes
// there, or if the run is not one.
Path publish(const PublishOptions& options);

// Publishes the run's newest checkpoint and looks for another one every `seconds`, until `stop` is set.
// published(path) is called for each. A checkpoint that cannot be exported ends it with the error.
void follow_run(const PublishOptions& options, double seconds, const std::atomic<bool>& stop,
                const std::function<void(const Path&)>& published);

}  // namespace hstu
