#include "hstu/serve/http_session.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>

#include "hstu/base/error.h"
#include "hstu/base/text.h"
#include "hstu/base/version.h"
#include "hstu/serve/json_requests.h"

namespace hstu::serving {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;

// A request line, the header's other lines, a chunk's line, all trailers: each at most so long.
constexpr std::size_t kMostHeaderBytes = 16 << 10;
constexpr std::size_t kFirstRead = 4 << 10, kLongestRead = 64 << 10;
// Longer bodies are counted in most_bodies_bytes, and are the handler's on a thread of their own.
constexpr std::size_t kShortBody = 64 << 10;
constexpr double kLingerSeconds = 1, kLastIdleSeconds = 0.25;

struct Refusal {
  int status = 0;
  std::string why;
};

// What a field asks for that this server does not do.
std::optional<Refusal> refusal_of(http::field name, beast::string_view value) {
  if (name == http::field::transfer_encoding && !beast::iequals(value, "chunked"))
    return Refusal{501, fmt::format("Transfer-Encoding: expected chunked, found {}", std::string(value))};
  if (name == http::field::content_encoding && !value.empty() && !beast::iequals(value, "identity"))
    return Refusal{
        415, fmt::format("Content-Encoding: {}: send the body without an encoding", std::string(value))};
  if (name == http::field::expect && !beast::iequals(value, "100-continue"))
    return Refusal{417, fmt::format("Expect: expected 100-continue, found {}", std::string(value))};
  return std::nullopt;
}

// RFC 9110, 8.3.1.
std::string media_type_of(beast::string_view content_type) {
  std::string type(content_type.substr(0, content_type.find(';')));
  while (!type.empty() && (type.back() == ' ' || type.back() == '\t')) type.pop_back();
  std::ranges::transform(type, type.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return type;
}

}  // namespace

Session::Session(Tcp::socket socket, SharedBySessions& shared)
    : socket_(std::move(socket)),
      shared_(shared),
      timer_(socket_.get_executor()),
      buffer_(kLongestRead + kMostHeaderBytes) {
  ++shared_.connections;
}

Session::~Session() {
  if (owes_) ++shared_.lost;
  hold(0);
  --shared_.connections;
}

template <typename Step>
void Session::guarded(const Step& step) noexcept {
  try {
    step();
  } catch (const std::bad_alloc&) {
    fail(503);
  } catch (...) {
    fail(500);
  }
}

void Session::fail(int status) noexcept {
  try {
    if (phase_ == Phase::receiving)
      return refuse(status, status == 503 ? "out of memory: try again later" : "it cannot be read");
  } catch (...) {  // not even the answer has memory
  }
  close();
}

void Session::start() {
  asio::dispatch(socket_.get_executor(),
                 [self = shared_from_this()] { self->guarded([&] { self->wait(); }); });
}

void Session::end_if_idle() {
  asio::dispatch(socket_.get_executor(), [self = shared_from_this()] {
    self->guarded([&] {
      if (self->phase_ == Phase::idle) self->limit_time(kLastIdleSeconds);
    });
  });
}

// Until the first byte of a request.
void Session::wait() {
  phase_ = Phase::idle;
  if (buffer_.size() > 0) {
    begin_request();
    return parse();
  }
  buffer_.shrink_to_fit();
  limit_time(shared_.is_ending ? kLastIdleSeconds : shared_.options.idle_seconds);
  read(kFirstRead);
}

void Session::begin_request() {
  phase_ = Phase::receiving;
  since_ = Clock::now();
  has_header_ = is_head_ = false;
  parser_.emplace();
  parser_->header_limit(kMostHeaderBytes);
  parser_->body_limit(static_cast<std::uint64_t>(shared_.options.most_body_bytes));
  limit_time(shared_.options.request_seconds);
}

void Session::read(std::size_t most) {
  socket_.async_read_some(buffer_.prepare(most),
                          [self = shared_from_this()](const Failure& failure, std::size_t n) {
                            self->guarded([&] { self->received(failure, n); });
                          });
}

void Session::received(const Failure& failure, std::size_t n) {
  if (phase_ == Phase::discarding) return failure ? close() : read(kMostHeaderBytes);
  if (phase_ == Phase::idle) {
    if (failure) return close();
    begin_request();
  } else if (failure) {
    if (is_late_)
      return refuse(408, fmt::format("it was not complete after {} s (hstu serve --request-seconds)",
                                     shared_.options.request_seconds));
    if (failure == asio::error::eof) return refuse(400, "the connection ended before it was complete");
    ++shared_.cut_requests;
    return close();
  }
  buffer_.commit(n);
  parse();
}

// As far as there are bytes.
void Session::parse() {
  Failure failure;
  while (buffer_.size() > 0 && !failure) {
    buffer_.consume(parser_->put(buffer_.data(), failure));
    if (!has_header_ && parser_->is_header_done()) {
      has_header_ = true;
      if (!read_header()) return;
    }
    if (parser_->is_done()) return handle();
  }
  if (failure && failure != http::error::need_more) return refuse(failure);
  // Of a body nothing is left: these are the lines of a chunk, or trailers.
  if (buffer_.size() >= kMostHeaderBytes) return refuse(http::error::header_limit);
  if (!hold(parser_->get().body().size()))
    return refuse(503,
                  "the bodies of all connections are too long: try again later (hstu serve --most-bodies)");
  if (has_header_ && beast::iequals(parser_->get()[http::field::expect], "100-continue")) return go_on();
  std::size_t most = kFirstRead;
  if (has_header_)
    most = std::clamp<std::uint64_t>(parser_->content_length_remaining().value_or(kMostHeaderBytes),
                                     kFirstRead, kLongestRead);
  read(most);
}

// False: it has been refused.
bool Session::read_header() {
  const auto& message = parser_->get();
  keeps_ = message.keep_alive();
  version_ = message.version();
  is_head_ = message.method() == http::verb::head;
  for (const auto& field : message) {
    if (const auto refusal = refusal_of(field.name(), field.value())) {
      refuse(refusal->status, refusal->why);
      return false;
    }
  }
  const beast::string_view target = message.target();
  request_ = {.method = std::string(message.method_string()),
              .path = std::string(target.substr(0, target.find('?'))),
              .media_type = media_type_of(message[http::field::content_type]),
              .body = {}};
  return true;
}

// To a client that sends the body when it has been asked for it.
void Session::go_on() {
  static constexpr std::string_view kGoOn = "HTTP/1.1 100 Continue\r\n\r\n";
  parser_->get().erase(http::field::expect);
  asio::async_write(socket_, asio::buffer(kGoOn),
                    [self = shared_from_this()](const Failure& failure, std::size_t) {
                      self->guarded([&] {
                        if (failure) return self->received(failure, 0);
                        self->read(kFirstRead);
                      });
                    });
}

// False: the long bodies of all connections have no more room.
bool Session::hold(std::size_t body_bytes) {
  const std::int64_t bytes = body_bytes > kShortBody ? static_cast<std::int64_t>(body_bytes) : 0;
  const std::int64_t added = bytes - std::exchange(held_, bytes);
  return (shared_.held_bytes += added) <= shared_.options.most_bodies_bytes || added <= 0;
}

void Session::handle() {
  phase_ = Phase::owing;
  owes_ = true;
  ++turn_, timer_.cancel();
  request_.body = std::move(parser_->get().body());
  parser_.reset();
  const auto respond = [self = shared_from_this()](HttpAnswer answer) {
    asio::post(self->socket_.get_executor(), [self, answer = std::move(answer)]() mutable {
      self->guarded([&] { self->write(std::move(answer)); });
    });
  };
  if (request_.body.size() <= kShortBody) return shared_.handler(std::move(request_), respond);
  asio::post(shared_.long_bodies, [self = shared_from_this(), respond] {
    try {
      self->shared_.handler(std::move(self->request_), respond);
    } catch (...) {  // without an answer the connection ends
    }
  });
}

// What follows on the connection cannot be read.
void Session::refuse(int status, const std::string& why) {
  keeps_ = false;
  shared_.refused(status, seconds_since(since_));
  write({.status = status, .body = json_error("the request: " + why)});
}

void Session::refuse(const Failure& failure) {
  if (failure == http::error::body_limit)
    return refuse(413, fmt::format("the body is longer than {} (hstu serve --most-body)",
                                   human_bytes(static_cast<double>(shared_.options.most_body_bytes))));
  if (failure == http::error::header_limit)
    return refuse(431, fmt::format("its line, fields, the line of a chunk or its trailers are longer than {}",
                                   human_bytes(static_cast<double>(kMostHeaderBytes))));
  refuse(400, failure.message());
}

void Session::write(HttpAnswer answer) {
  phase_ = Phase::answering;
  parser_.reset();
  hold(0);
  response_.emplace();
  response_->version(version_);
  response_->result(static_cast<unsigned>(answer.status));
  response_->set(http::field::server, "hstu/" + std::string(version()));
  response_->set(http::field::content_type, answer.content_type);
  response_->keep_alive(keeps_ && !shared_.is_draining);
  response_->body() = std::move(answer.body);
  response_->prepare_payload();
  if (is_head_) response_->body().clear();
  limit_time(shared_.options.request_seconds);
  http::async_write(socket_, *response_, [self = shared_from_this()](const Failure& failure, std::size_t) {
    self->guarded([&] { self->written(failure); });
  });
}

void Session::written(const Failure& failure) {
  const bool keeps = !response_->need_eof();
  response_.reset();
  if (std::exchange(owes_, false) && failure) ++(is_late_ ? shared_.too_slow : shared_.closed);
  if (failure) return close();
  keeps ? wait() : linger();
}

// Reads what the client still sends: closing before that would take its answer away.
void Session::linger() {
  phase_ = Phase::discarding;
  Failure ignored;
  socket_.shutdown(Tcp::socket::shutdown_send, ignored);
  buffer_.clear();
  limit_time(kLingerSeconds);
  read(kMostHeaderBytes);
}

void Session::close() noexcept {
  ++turn_;
  try {
    timer_.cancel();
  } catch (...) {  // then it ends by itself
  }
  Failure ignored;
  socket_.close(ignored);
}

// What is being done ends then.
void Session::limit_time(double seconds) {
  is_late_ = false;
  ++turn_;
  end_after(seconds);
}

// Again and again: a write of several parts may be between two of them.
void Session::end_after(double seconds) {
  timer_.expires_after(std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9)));
  timer_.async_wait([self = shared_from_this(), turn = turn_](const Failure&) {
    if (turn != self->turn_) return;
    self->guarded([&] {
      self->is_late_ = true;
      self->socket_.cancel();
      self->end_after(0.1);
    });
  });
}

}  // namespace hstu::serving
