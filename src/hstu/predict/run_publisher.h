// Publishes the checkpoints of a run while it trains.
#pragma once

#include <atomic>
#include <thread>

#include "hstu/base/files.h"
#include "hstu/predict/publish.h"

namespace hstu {

// Looks for a new checkpoint every second, by a thread of its own, and publishes it (publish.h). Of several
// new ones the newest. What fails is a warning, and is tried again with the next checkpoint: it never ends
// the run.
class RunPublisher {
 public:
  explicit RunPublisher(PublishOptions options);
  ~RunPublisher();  // publishes the last checkpoint
  RunPublisher(const RunPublisher&) = delete;
  RunPublisher& operator=(const RunPublisher&) = delete;

 private:
  void publish_new();

  PublishOptions options_;
  Path tried_ = {};  // the newest checkpoint
  std::atomic<bool> ends_ = false;
  std::thread thread_;
};

}  // namespace hstu
