// The one thread pool (OpenMP, shared with the matrix products).
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <limits>
#include <mutex>

#include <omp.h>

namespace hstu {

inline void set_threads(int threads) {
  omp_set_num_threads(std::max(1, threads));
}
inline int threads() {
  return omp_get_max_threads();
}

// Throws Error unless the system starts threads() threads at the same time. OpenMP itself would end the
// program with a message of its own, perhaps after hours of work.
void check_threads_start();

// The first exception of a parallel region, kept until the region has ended: no exception may leave one.
class FirstException {
 public:
  template <typename Body>
  void run(const Body& body) noexcept {
    try {
      body();
    } catch (...) {
      const std::scoped_lock lock(mutex_);
      if (!first_) first_ = std::current_exception();
    }
  }
  void rethrow() const {
    if (first_) std::rethrow_exception(first_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr first_;
};

// What an element of one loop costs, by its latest runs.
class LoopCost {
 public:
  // Waking threads and waiting for the last of them takes 5 to 50 us, more where a processor is shared.
  // A loop that has not run yet gets its threads.
  bool is_worth_threads(std::int64_t elements) const {
    constexpr float kShortest = kAlways ? 0 : 80e3F;
    return ns_of_element_.load(std::memory_order_relaxed) * static_cast<float>(elements) >= kShortest;
  }
  void add(std::int64_t ns, std::int64_t elements) {
    const float latest = static_cast<float>(ns) / static_cast<float>(elements);
    const float before = ns_of_element_.load(std::memory_order_relaxed);
    ns_of_element_.store(before == kUnknown ? latest : before + (latest - before) / 8,
                         std::memory_order_relaxed);
  }

 private:
#ifdef __SANITIZE_THREAD__  // which is to see the threads
  static constexpr bool kAlways = true;
#else
  static constexpr bool kAlways = false;
#endif
  static constexpr float kUnknown = std::numeric_limits<float>::infinity();
  std::atomic<float> ns_of_element_ = kUnknown;
};

// Calls body(begin, end) for blocks of [0, n) of about `grain` elements, by several threads if the loop is
// long enough. The blocks do not depend on the number of threads, so sums per block are reproducible.
template <typename Body>
void parallel_blocks(std::int64_t n, std::int64_t grain, const Body& body) {
  if (n <= 0) return;
  const std::int64_t blocks = (n + grain - 1) / grain;
  static LoopCost cost;  // of this loop: each has a Body of its own
  FirstException failure;
  std::atomic<std::int64_t> busy_ns = 0;
#pragma omp parallel if (blocks > 1 && cost.is_worth_threads(n))
  {
    const auto begin = std::chrono::steady_clock::now();
#pragma omp for schedule(dynamic, 1) nowait
    for (std::int64_t b = 0; b < blocks; ++b) {
      failure.run([&] { body(b * grain, std::min(n, (b + 1) * grain)); });
    }
    busy_ns += std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count();
  }
  cost.add(busy_ns, n);
  failure.rethrow();
}

// The smallest i in [0, n) for which holds(i); n if there is none. Tests in parallel, in blocks of `grain`.
template <typename Holds>
std::int64_t parallel_find(std::int64_t n, std::int64_t grain, const Holds& holds) {
  std::atomic<std::int64_t> first = n;
  parallel_blocks(n, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end && i < first.load(std::memory_order_relaxed); ++i) {
      if (!holds(i)) continue;
      std::int64_t known = first.load(std::memory_order_relaxed);
      while (i < known && !first.compare_exchange_weak(known, i, std::memory_order_relaxed)) {
      }
    }
  });
  return first;
}

}  // namespace hstu
