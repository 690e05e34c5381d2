// An HTTP/1.1 server on a few threads: any number of connections, each with limits of size and time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace hstu {

struct HttpServerOptions {
  std::string address = "127.0.0.1";
  int port = 8080;  // 0: any free one
  int threads = 2;  // that read requests and write answers
  std::int64_t most_body_bytes = std::int64_t{8} << 20;
  std::int64_t most_connections = 10'000;  // further ones are closed at once
  double request_seconds = 10;             // to send a request, and to take its answer
  double idle_seconds = 60;                // between requests of a connection
};

struct HttpRequest {
  std::string method, path;  // without the query
  std::string content_type;
  std::string body;
};

struct HttpAnswer {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
};

class HttpServer {
 public:
  // Exactly once for each request, from any thread.
  using Respond = std::function<void(HttpAnswer)>;
  // Called by the server's threads; should not take long, and must not throw.
  using Handler = std::function<void(HttpRequest, Respond)>;

  // Takes the address. Throws Error if it cannot be used.
  HttpServer(const HttpServerOptions& options, Handler handler);
  // As stop(0); without start() nothing has to end.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Accepts connections from now on.
  void start();
  int port() const;
  std::int64_t connections() const;
  // Accepts nothing more, closes idle connections, and waits so long for the answers that are owed.
  void stop(double seconds);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hstu
