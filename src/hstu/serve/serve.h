// Answers requests for scores over HTTP. docs/serving.md
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "hstu/base/files.h"
#include "hstu/score/request_queue.h"
#include "hstu/score/request_scorer.h"
#include "hstu/serve/http_server.h"
#include "hstu/serve/metrics_text.h"
#include "hstu/serve/model_watch.h"

namespace hstu {

struct ServeOptions {
  RequestScorerOptions model;
  RequestQueueOptions queue = {.waiting = 10'000};
  HttpServerOptions http;
  Path watch = {};                        // a folder in which new exports appear; "": none
  double watch_seconds = 1;               // between looks into it
  bool any_kind = false;                  // go over to models of which other requests are asked, too
  double drain_seconds = 1;               // at the end, in which connections are still accepted
  std::int64_t most_users = 4096;         // requests in one body
  std::int64_t most_candidates = 65'536;  // of all requests in one body
};

class Server {
 public:
  // Opens the model and accepts connections. Throws UsageError or Error if either is not possible.
  explicit Server(const ServeOptions& options);
  // Answers what it has accepted.
  ~Server();

  int port() const { return http_->port(); }
  // GET /ready says no from now on, and each answer ends its connection.
  void drain();
  // Answers what it has accepted, and accepts nothing more. Returns how many requests have no whole answer.
  std::int64_t stop();
  std::string model() const { return queue_->model()->version(); }

 private:
  void handle(const HttpRequest& request, const HttpServer::Respond& respond);
  void answer(const HttpRequest& request, Asked asked, const HttpServer::Respond& respond);
  std::string health() const;
  HttpAnswer ready() const;
  bool open_newer(const Path& path);

  ServeOptions options_;
  ServeMetrics metrics_;
  std::atomic<bool> is_draining_ = false;
  std::string failure_ = {};          // of the last look into the watched folder
  std::unique_ptr<HttpServer> http_;  // outlives the queue, which owes it answers
  std::unique_ptr<RequestQueue> queue_;
  std::unique_ptr<ModelWatch> watch_;
};

// Serves until `stop` is set and for drain_seconds, then answers what it has accepted. Prints the address and
// every model that it opens to stderr. Throws Error with the number of requests that have no whole answer, if
// there are any.
void serve(const ServeOptions& options, const std::atomic<bool>& stop);

}  // namespace hstu
