#include "hstu/base/threads.h"

#include <latch>
#include <system_error>
#include <thread>
#include <vector>

#include "hstu/base/error.h"

namespace hstu {

void check_threads_start() {
  const auto others = static_cast<std::size_t>(threads() - 1);
  std::latch end(1);
  std::vector<std::thread> started;
  started.reserve(others);
  try {
    while (started.size() < others) started.emplace_back([&end] { end.wait(); });
  } catch (const std::system_error&) {  // reported below
  }
  end.count_down();
  for (std::thread& thread : started) thread.join();
  check(started.size() == others,
        "the system starts {} of {} threads: use fewer --threads, or raise the limit (ulimit -u, ulimit -v)",
        started.size() + 1, threads());
}

}  // namespace hstu
