// What a run opens before its first step.
#include <map>

#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "hstu/base/error.h"
#include "training/run_fixture.h"

namespace hstu::testing {
namespace {

// How often each file of a folder is opened while this object lives. Opens of one file in direct succession
// count once, as the kernel merges equal events.
class Opens {
 public:
  explicit Opens(const Path& folder) : events_(inotify_init1(IN_NONBLOCK)) {
    check(inotify_add_watch(events_, folder.c_str(), IN_OPEN) >= 0, "cannot watch {}", folder.string());
  }
  ~Opens() { ::close(events_); }
  Opens(const Opens&) = delete;
  Opens& operator=(const Opens&) = delete;

  std::map<std::string, int> counts() const {
    std::map<std::string, int> counts;
    alignas(inotify_event) char buffer[65536];
    for (ssize_t bytes; (bytes = ::read(events_, buffer, sizeof(buffer))) > 0;) {
      for (const char* at = buffer; at < buffer + bytes;) {
        const auto* const event = reinterpret_cast<const inotify_event*>(at);
        at += sizeof(inotify_event) + event->len;
        if (event->len > 0 && (event->mask & IN_ISDIR) == 0) ++counts[event->name];
      }
    }
    return counts;
  }

 private:
  int events_;
};

using Start = RunTest;

TEST_F(Start, OpensEachFileOfTheDatasetOnce) {
  run("before");  // builds the index of anchors
  const Opens opens(folder_ / "dataset");
  run("run");
  const auto counts = opens.counts();
  EXPECT_TRUE(counts.contains("manifest.json"));
  EXPECT_TRUE(counts.contains("item.npy"));
  for (const auto& [file, count] : counts) EXPECT_EQ(count, 1) << file;
}

}  // namespace
}  // namespace hstu::testing
