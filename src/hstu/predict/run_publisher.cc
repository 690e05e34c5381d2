#include "hstu/predict/run_publisher.h"

#include <chrono>
#include <exception>
#include <optional>
#include <utility>

#include "hstu/base/clock.h"
#include "hstu/base/process.h"
#include "hstu/base/terminal.h"
#include "hstu/checkpoint/checkpoint_folder.h"
#include "hstu/run/folder.h"

namespace hstu {

RunPublisher::RunPublisher(PublishOptions options)
    : options_(std::move(options)), thread_([this] {
        options_.patience = std::chrono::minutes(10);
        Clock::time_point looked = Clock::now();
        while (!ends_) {
          std::this_thread::sleep_for(std::chrono::milliseconds(20));
          if (seconds_since(looked) < 1) continue;
          publish_new(tried_);
          looked = Clock::now();
        }
      }) {}

RunPublisher::~RunPublisher() {
  ends_ = true;
  thread_.join();
  publish_new(published_);
}

void RunPublisher::publish_new(const Path& known) {
  try {
    const auto newest = latest_checkpoint(RunFolder{options_.run}.checkpoints());
    if (!newest || newest->path == known) return;
    tried_ = newest->path;
    const Path path = publish(options_);
    published_ = tried_;
    print_note("\npublished {}\n", path.string());
  } catch (const std::exception& error) {
    print_note("\nWARNING: not published: {}\n", words_of(error));
  }
}

}  // namespace hstu
