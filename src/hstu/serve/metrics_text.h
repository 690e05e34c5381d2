// Counts of a server for Prometheus.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "hstu/score/request_queue.h"
#include "hstu/serve/http_server.h"

namespace hstu {

class ServeMetrics {
 public:
  // An answered HTTP request.
  void add(const std::string& path, int status, double seconds);
  void add_load(bool succeeded);
  void add_unknown_texts(std::int64_t count);
  // In Prometheus' text format.
  std::string text(const QueueCounts& queue, const HttpCounts& http, const std::string& model) const;

 private:
  static constexpr std::array kBounds{0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0};

  mutable std::mutex mutex_;
  std::map<std::pair<std::string, int>, std::int64_t> requests_;  // by path and status
  std::array<std::int64_t, kBounds.size() + 1> within_{};  // requests of at most each bound, the last: all
  double seconds_ = 0;
  std::int64_t loads_ = 0, failed_loads_ = 0, unknown_texts_ = 0;
};

}  // namespace hstu
