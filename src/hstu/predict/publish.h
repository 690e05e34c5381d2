// Publishes exports of a run in a folder, or a store of objects, that servers follow. docs/serving.md
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "hstu/base/files.h"
#include "hstu/objects/store_options.h"

namespace hstu {

struct PublishOptions {
  Path run;
  Path to;                      // a folder, or s3://BUCKET/FOLDER
  std::string checkpoint = {};  // a step or "best"; "": the newest
  Path data = {};               // the run's dataset, when it has moved
  // Exports; older ones are removed, but neither the current one nor one that a kept one has as its base.
  std::int64_t keep = 3;
  std::int64_t full_every =
      8;                    // exports: the others have only the rows that changed since the last whole one
  StoreOptions store = {};  // of s3://
  Path beside = {};         // of s3://: folder in which the same is published at first; "": RUN/published
  std::chrono::seconds patience{0};  // while another process publishes there
};

// Makes the export TO/step_STEP of the checkpoint unless it is there, and again if the run's dataset was
// extended since, lets the link TO/current name it, and removes older exports. A server sees the old export
// or the new one, whenever this is interrupted; calling it again finishes the work. An export of another
// checkpoint of the same step, and what has it as its base, is removed. Returns the export's path, or
// s3://BUCKET/FOLDER/NAME. Throws UsageError if another process publishes there for longer than `patience`,
// or if the run is not one.
Path publish(const PublishOptions& options);

// Throws UsageError unless exports can be published in the folder, which need not exist, or the URL and the
// options of the store are such. `key` names the folder.
void check_publication(const Path& folder, const char* key, const StoreOptions& store);

// Publishes the run's newest checkpoint and looks for another one every `seconds`, until `stop` is set.
// published(path) is called for each. A checkpoint that cannot be exported ends it with the error.
void follow_run(const PublishOptions& options, double seconds, const std::atomic<bool>& stop,
                const std::function<void(const Path&)>& published);

}  // namespace hstu
