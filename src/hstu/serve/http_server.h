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
  std::int64_t most_bodies_bytes = std::int64_t{64} << 20;  // of all long bodies that are being received
  std::int64_t most_connections = 10'000;                   // further ones are closed at once
  double request_seconds = 10;                              // to send a request, and to take its answer
  double idle_seconds = 60;                                 // between requests of a connection
};

struct HttpRequest {
  std::string method, path;  // without the query
  std::string media_type;    // of the body, in lower case, without parameters
  std::string body;
};

struct HttpAnswer {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
};

struct HttpCounts {
  std::int64_t connections = 0;                     // open ones
  std::int64_t refused_connections = 0;             // beyond most_connections
  std::int64_t failed_connections = 0;              // could not be accepted: too many open files, no memory
  std::int64_t cut_requests = 0;                    // their clients reset the connection
  std::int64_t closed = 0, too_slow = 0, lost = 0;  // answers that the client did not want, did not take in
                                                    // time; that had no memory
};

class HttpServer {
 public:
  // Once for each request, from any thread. Without a call the connection is closed.
  using Respond = std::function<void(HttpAnswer)>;
  // Called by the server's threads; should not take long. Another thread gets long bodies.
  using Handler = std::function<void(HttpRequest, Respond)>;
  // Called before the server answers what it does not give to the handler: a request that is malformed, too
  // long or too slow. `seconds`: from its first byte.
  using Refused = std::function<void(int status, double seconds)>;

  // Takes the address. Throws Error if it cannot be used.
  HttpServer(const HttpServerOptions& options, Handler handler, Refused refused);
  // As stop(); without start() nothing has to end.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Accepts connections from now on.
  void start();
  int port() const;
  HttpCounts counts() const;
  // From now on each answer ends its connection, and says so.
  void drain();
  // Accepts nothing more, closes idle connections, and waits for the others: each has a limit of time to send
  // its request and to take its answer. Returns how many requests that were read had no whole answer, unless
  // their client closed the connection.
  std::int64_t stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hstu
