#include "hstu/objects/connections.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace hstu {

void for_each_by_connections(std::size_t count, const std::function<void(std::size_t)>& work) {
  constexpr std::size_t kConnections = 8;  // one alone is far slower than the network
  std::atomic<std::size_t> next = 0;
  std::exception_ptr failure;
  std::mutex mutex;
  std::vector<std::jthread> threads;
  for (std::size_t n = 0; n < std::min(kConnections, count); ++n) {
    threads.emplace_back([&] {
      try {
        for (std::size_t index = next++; index < count; index = next++) work(index);
      } catch (...) {
        next = count;
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
      }
    });
  }
  threads.clear();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace hstu
