#include "hstu/serve/metrics_text.h"

#include <initializer_list>
#include <utility>

#include <fmt/format.h>

namespace hstu {
namespace {

template <typename Number>
void put(std::string& text, const char* name, const char* type, const char* help, Number value) {
  fmt::format_to(std::back_inserter(text), "# HELP {0} {2}\n# TYPE {0} {1}\n{0} {3}\n", name, type, help,
                 value);
}

void put_causes(std::string& text, const char* name, const char* help,
                std::initializer_list<std::pair<const char*, std::int64_t>> counts) {
  fmt::format_to(std::back_inserter(text), "# HELP {0} {1}\n# TYPE {0} counter\n", name, help);
  for (const auto& [cause, count] : counts)
    fmt::format_to(std::back_inserter(text), "{}{{cause=\"{}\"}} {}\n", name, cause, count);
}

}  // namespace

void ServeMetrics::add(const std::string& path, int status, double seconds) {
  const std::scoped_lock lock(mutex_);
  ++requests_[{path, status}];
  seconds_ += seconds;
  for (std::size_t b = 0; b < kBounds.size(); ++b)
    if (seconds <= kBounds[b]) ++within_[b];
  ++within_.back();
}

void ServeMetrics::add_load(bool succeeded) {
  const std::scoped_lock lock(mutex_);
  ++(succeeded ? loads_ : failed_loads_);
}

void ServeMetrics::add_unknown_texts(std::int64_t count) {
  const std::scoped_lock lock(mutex_);
  unknown_texts_ += count;
}

std::string ServeMetrics::text(const QueueCounts& queue, const HttpCounts& http,
                               const std::string& model) const {
  const std::scoped_lock lock(mutex_);
  std::string text =
      "# HELP hstu_http_requests_total HTTP requests answered\n# TYPE hstu_http_requests_total counter\n";
  const auto to = std::back_inserter(text);
  for (const auto& [key, count] : requests_)
    fmt::format_to(to, "hstu_http_requests_total{{path=\"{}\",status=\"{}\"}} {}\n", key.first, key.second,
                   count);
  text += "# HELP hstu_http_seconds from a request to its answer\n# TYPE hstu_http_seconds histogram\n";
  for (std::size_t b = 0; b < kBounds.size(); ++b)
    fmt::format_to(to, "hstu_http_seconds_bucket{{le=\"{}\"}} {}\n", kBounds[b], within_[b]);
  fmt::format_to(
      to,
      "hstu_http_seconds_bucket{{le=\"+Inf\"}} {0}\nhstu_http_seconds_sum {1}\nhstu_http_seconds_count {0}\n",
      within_.back(), seconds_);
  put(text, "hstu_connections", "gauge", "open connections", http.connections);
  put_causes(text, "hstu_connections_refused_total", "connections closed at once",
             {{"most_connections", http.refused_connections}, {"failed", http.failed_connections}});
  put(text, "hstu_http_requests_cut_total", "counter",
      "requests whose client reset the connection before their end", http.cut_requests);
  put_causes(text, "hstu_http_answers_lost_total",
             "answers, counted above, that the client did not get whole",
             {{"closed", http.closed}, {"slow", http.too_slow}, {"failed", http.lost}});
  put(text, "hstu_requests_total", "counter", "users scored", queue.requests);
  put(text, "hstu_requests_failed_total", "counter", "of these, without an answer", queue.failed);
  put(text, "hstu_requests_waiting", "gauge", "users that wait for a batch", queue.waiting);
  put(text, "hstu_unknown_texts_total", "counter", "texts of contexts that the dataset does not have",
      unknown_texts_);
  put(text, "hstu_unknown_items_total", "counter",
      "candidates and events of requests whose items the model has no row for", queue.untrained_items);
  put(text, "hstu_batches_total", "counter", "forward passes for several users", queue.batches);
  put(text, "hstu_busy_seconds_total", "counter", "of the thread that computes", queue.busy_seconds);
  const HistoryCacheCounts& cache = queue.cache;
  put(text, "hstu_cache_known_events_total", "counter", "events of histories whose keys were kept",
      cache.known_events);
  put(text, "hstu_cache_computed_events_total", "counter", "events of histories that were computed",
      cache.computed_events);
  put(text, "hstu_cache_evicted_total", "counter", "histories that left for others", cache.evicted);
  put(text, "hstu_cache_histories", "gauge", "histories that are kept", cache.histories);
  put(text, "hstu_cache_bytes", "gauge", "of their keys and values", cache.bytes);
  put(text, "hstu_cache_limit_bytes", "gauge", "that they may have", cache.limit);
  put(text, "hstu_cache_fetched_events_total", "counter", "whose keys came back from the host's pages",
      cache.fetched_events);
  put(text, "hstu_cache_behind_bytes", "gauge", "of keys and values in pages of the host behind a GPU's",
      cache.behind_bytes);
  put(text, "hstu_cache_behind_limit_bytes", "gauge", "that they may have", cache.behind_limit);
  put(text, "hstu_model_loads_total", "counter", "models opened, the first one too", loads_);
  put(text, "hstu_model_load_failures_total", "counter",
      "models that could not be opened or are of another kind", failed_loads_);
  fmt::format_to(to,
                 "# HELP hstu_model_info the model that answers\n# TYPE hstu_model_info "
                 "gauge\nhstu_model_info{{version=\"{}\"}} 1\n",
                 model);
  return text;
}

}  // namespace hstu
