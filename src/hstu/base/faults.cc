#include "hstu/base/faults.h"

#include <charconv>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <signal.h>
#include <unistd.h>

#include "hstu/base/choice.h"
#include "hstu/base/contains.h"

namespace hstu {
namespace {

constexpr Choice<int> kSignals[] = {{"kill", SIGKILL}, {"term", SIGTERM}, {"hup", SIGHUP}, {"usr1", SIGUSR1}};

FaultWatcher& watcher() {
  static FaultWatcher instance;
  return instance;
}

FaultWatcher parse_fault(const std::string& words) {
  const std::vector<std::string> parts = split(words, ':');
  if (parts.size() < 2 || parts.size() > 3)
    fail_usage("--fault {}: expected POINT:COUNT or POINT:COUNT:kill|term|hup|usr1", words);
  std::vector<std::string> known;
  for (const FaultPoint& point : kFaultPoints) known.emplace_back(point.name);
  if (!contains(known, parts[0]))
    fail_usage("--fault {}: the point \"{}\" does not exist{}", words, parts[0], suggestion(parts[0], known));
  std::int64_t count = 0;
  const char* const end = parts[1].data() + parts[1].size();
  if (std::from_chars(parts[1].data(), end, count).ptr != end || count < 1)
    fail_usage("--fault {}: expected a count of at least 1, found \"{}\"", words, parts[1]);
  const int signal = parts.size() == 3 ? parse_word(kSignals, parts[2], "signal of --fault") : SIGKILL;
  return [point = parts[0], left = count, signal](std::string_view passed) mutable {
    if (passed == point && --left == 0) ::kill(::getpid(), signal);
  };
}

}  // namespace

void watch_fault_points(FaultWatcher new_watcher) {
  watcher() = std::move(new_watcher);
}

bool fault_points_are_watched() {
  return static_cast<bool>(watcher());
}

void fault_point(std::string_view point) {
  if (watcher()) watcher()(point);
}

FaultWatcher parse_faults(std::span<const std::string> words) {
  std::vector<FaultWatcher> faults;
  for (const std::string& word : words) faults.push_back(parse_fault(word));
  return [faults](std::string_view point) mutable {
    for (const FaultWatcher& fault : faults) fault(point);
  };
}

}  // namespace hstu
