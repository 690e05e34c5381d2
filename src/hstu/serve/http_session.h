// A connection of an HttpServer.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include "hstu/base/clock.h"
#include "hstu/serve/http_server.h"

namespace hstu::serving {

using Tcp = boost::asio::ip::tcp;
using Failure = boost::beast::error_code;

// What the sessions of a server share.
struct SharedBySessions {
  HttpServerOptions options;
  HttpServer::Handler handler;
  HttpServer::Refused refused;
  boost::asio::thread_pool long_bodies{1};  // one at a time: parsing takes many times their memory
  std::atomic<std::int64_t> connections = 0, refused_connections = 0, failed_connections = 0;
  std::atomic<std::int64_t> cut_requests = 0, closed = 0, too_slow = 0, lost = 0;
  std::atomic<std::int64_t> held_bytes = 0;                  // of long bodies
  std::atomic<bool> is_draining = false, is_ending = false;  // answers, idle connections end
};

// Reads a request, waits for its answer, writes it, and begins again.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(Tcp::socket socket, SharedBySessions& shared);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void start();
  // Of a server that ends: closes the connection unless a request comes at this moment.
  void end_if_idle();

 private:
  enum class Phase { idle, receiving, owing, answering, discarding };

  // Runs a step. What it throws (no memory) ends this connection alone.
  template <typename Step>
  void guarded(const Step& step) noexcept;
  void fail(int status) noexcept;

  void wait();
  void begin_request();
  void read(std::size_t most);
  void received(const Failure& failure, std::size_t n);
  void parse();
  bool read_header();
  void go_on();
  bool hold(std::size_t body_bytes);
  void handle();
  void refuse(int status, const std::string& why);
  void refuse(const Failure& failure);
  void write(HttpAnswer answer);
  void written(const Failure& failure);
  void linger();
  void close() noexcept;
  void limit_time(double seconds);
  void end_after(double seconds);

  Tcp::socket socket_;
  SharedBySessions& shared_;
  boost::asio::steady_timer timer_;
  std::int64_t turn_ = 0;  // of the timer: an earlier one may still end
  bool is_late_ = false;   // the time of what is being done is over
  boost::beast::flat_buffer buffer_;
  std::optional<boost::beast::http::request_parser<boost::beast::http::string_body>> parser_;
  std::optional<boost::beast::http::response<boost::beast::http::string_body>> response_;
  Phase phase_ = Phase::idle;
  Clock::time_point since_;  // the first byte of the request
  HttpRequest request_;
  std::int64_t held_ = 0;  // bytes of its body, if that is long
  unsigned version_ = 11;
  bool has_header_ = false, keeps_ = true, is_head_ = false, owes_ = false;
};

}  // namespace hstu::serving
