// Publishes the checkpoints of a run while it trains.
#pragma once

#include <atomic>
#include <thread>

#include "hstu/base/files.h"
#include "hstu/predict/publish.h"

namespace hstu {

// Looks for a new checkpoint every second, by a thread of its own, and publishes it (publish.h). Of several
// new ones the newest. What fails is a warning, and is tried again with the next checkpoint and at the end:
// it never ends the run. What another process publishes there is awaited for ten minutes: that may be the run
// before it was continued.
class RunPublisher {
 public:
  explicit RunPublisher(PublishOptions options);
  ~RunPublisher();  // publishes the last checkpoint
  RunPublisher(const RunPublisher&) = delete;
  RunPublisher& operator=(const RunPublisher&) = delete;

 private:
  void publish_new(const Path& known);

  PublishOptions options_;
  Path tried_ = {}, published_ = {};  // the newest checkpoint
  std::atomic<bool> ends_ = false;
  std::thread thread_;
};

}  // namespace hstu
