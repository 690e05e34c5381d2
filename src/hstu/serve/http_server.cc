#include "hstu/serve/http_server.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/strand.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include "hstu/base/error.h"
#include "hstu/base/text.h"
#include "hstu/base/version.h"
#include "hstu/serve/json_requests.h"

namespace hstu {
namespace serving {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using Tcp = asio::ip::tcp;
using Failure = beast::error_code;

constexpr std::uint32_t kMostHeaderBytes = 16 << 10;

std::chrono::nanoseconds duration(double seconds) {
  return std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9));
}

int status_of(const Failure& failure) {
  if (failure == http::error::body_limit) return 413;
  if (failure == http::error::header_limit || failure == http::error::buffer_overflow) return 431;
  return 400;
}

// What the sessions of a server share.
struct Shared {
  HttpServerOptions options;
  HttpServer::Handler handler;
  std::atomic<std::int64_t> connections = 0;
  std::atomic<bool> stopping = false;
};

// A connection: reads a request, waits for its answer, writes it, and begins again.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(Tcp::socket socket, Shared& shared) : stream_(std::move(socket)), shared_(shared) {
    ++shared_.connections;
  }
  ~Session() { --shared_.connections; }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void start() {
    asio::dispatch(stream_.get_executor(), [self = shared_from_this()] { self->wait(); });
  }
  // Ends a connection that owes no answer.
  void close_if_idle() {
    asio::dispatch(stream_.get_executor(), [self = shared_from_this()] {
      if (self->is_idle_) self->close();
    });
  }

 private:
  // Until the first byte of a request.
  void wait() {
    if (shared_.stopping) return close();
    if (buffer_.size() > 0) return read_header();
    is_idle_ = true;
    stream_.expires_after(duration(shared_.options.idle_seconds));
    stream_.async_read_some(buffer_.prepare(4096),
                            [self = shared_from_this()](Failure failure, std::size_t n) {
                              self->is_idle_ = false;
                              if (failure) return self->close();
                              self->buffer_.commit(n);
                              self->read_header();
                            });
  }

  void read_header() {
    parser_.emplace();
    parser_->header_limit(kMostHeaderBytes);
    parser_->body_limit(static_cast<std::uint64_t>(shared_.options.most_body_bytes));
    stream_.expires_after(duration(shared_.options.request_seconds));
    http::async_read_header(
        stream_, buffer_, *parser_, [self = shared_from_this()](Failure failure, std::size_t) {
          if (failure) return self->refuse(failure);
          if (!beast::iequals(self->parser_->get()[http::field::expect], "100-continue"))
            return self->read_body();
          self->go_on_.emplace(http::status::continue_, 11);
          http::async_write(self->stream_, *self->go_on_, [self](Failure not_written, std::size_t) {
            not_written ? self->close() : self->read_body();
          });
        });
  }

  void read_body() {
    http::async_read(stream_, buffer_, *parser_, [self = shared_from_this()](Failure failure, std::size_t) {
      failure ? self->refuse(failure) : self->handle();
    });
  }

  void handle() {
    auto message = parser_->release();
    keeps_ = message.keep_alive() && !shared_.stopping;
    version_ = message.version();
    is_head_ = message.method() == http::verb::head;
    stream_.expires_never();
    const beast::string_view target = message.target();
    HttpRequest request{.method = std::string(message.method_string()),
                        .path = std::string(target.substr(0, target.find('?'))),
                        .content_type = std::string(message[http::field::content_type]),
                        .body = std::move(message.body())};
    shared_.handler(std::move(request), [self = shared_from_this()](HttpAnswer answer) {
      asio::post(self->stream_.get_executor(),
                 [self, answer = std::move(answer)]() mutable { self->write(std::move(answer)); });
    });
  }

  // Of a request that could not be read: what follows it on the connection cannot be read either.
  void refuse(const Failure& failure) {
    if (failure == http::error::end_of_stream || failure == http::error::partial_message ||
        failure == asio::error::operation_aborted || failure == asio::error::connection_reset)
      return close();
    keeps_ = false;
    is_refused_ = true;
    if (failure == beast::error::timeout) return close();  // the stream is closed
    const std::string why =
        failure == http::error::body_limit
            ? fmt::format("the body is longer than {} (hstu serve --most-body)",
                          human_bytes(static_cast<double>(shared_.options.most_body_bytes)))
            : failure.message();
    write({.status = status_of(failure), .body = json_error("the request: " + why)});
  }

  void write(HttpAnswer answer) {
    response_.emplace();
    response_->version(version_);
    response_->result(static_cast<unsigned>(answer.status));
    response_->set(http::field::server, "hstu/" + std::string(version()));
    response_->set(http::field::content_type, answer.content_type);
    response_->keep_alive(keeps_ && !shared_.stopping);
    response_->body() = std::move(answer.body);
    response_->prepare_payload();
    if (is_head_) response_->body().clear();
    stream_.expires_after(duration(shared_.options.request_seconds));
    http::async_write(stream_, *response_, [self = shared_from_this()](Failure failure, std::size_t) {
      const bool keeps = !self->response_->need_eof();
      self->response_.reset();
      if (failure)
        self->close();
      else if (self->is_refused_)
        self->discard();
      else
        keeps ? self->wait() : self->close();
    });
  }

  // Reads what a refused client still sends: closing before that would take its answer away.
  void discard() {
    Failure ignored;
    stream_.socket().shutdown(Tcp::socket::shutdown_send, ignored);
    stream_.expires_after(std::chrono::seconds(1));
    read_and_discard();
  }
  void read_and_discard() {
    buffer_.clear();
    stream_.async_read_some(buffer_.prepare(kMostHeaderBytes),
                            [self = shared_from_this()](Failure failure, std::size_t) {
                              failure ? self->close() : self->read_and_discard();
                            });
  }

  void close() {
    Failure ignored;
    stream_.socket().shutdown(Tcp::socket::shutdown_send, ignored);
    stream_.close();
  }

  beast::tcp_stream stream_;
  Shared& shared_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  std::optional<http::response<http::empty_body>> go_on_;
  std::optional<http::response<http::string_body>> response_;
  unsigned version_ = 11;
  bool keeps_ = true, is_head_ = false, is_idle_ = false, is_refused_ = false;
};

}  // namespace serving

class HttpServer::Impl {
  using Tcp = serving::Tcp;
  using Failure = serving::Failure;
  using Session = serving::Session;

 public:
  Impl(const HttpServerOptions& options, Handler handler)
      : shared_{.options = options, .handler = std::move(handler)},
        acceptor_(serving::asio::make_strand(io_)) {
    listen();
  }
  ~Impl() {
    io_.stop();
    for (std::thread& thread : threads_) thread.join();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void start() {
    accept();
    for (int i = 0; i < std::max(1, shared_.options.threads); ++i)
      threads_.emplace_back([this] { io_.run(); });
  }
  int port() const { return port_; }
  std::int64_t connections() const { return shared_.connections; }

  void stop(double seconds) {
    shared_.stopping = true;
    serving::asio::post(acceptor_.get_executor(), [this] {
      Failure ignored;
      acceptor_.close(ignored);
    });
    {
      const std::scoped_lock lock(mutex_);
      for (const std::weak_ptr<Session>& open : sessions_)
        if (const auto session = open.lock()) session->close_if_idle();
    }
    const auto end = std::chrono::steady_clock::now() + serving::duration(seconds);
    while (shared_.connections > 0 && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }

 private:
  void listen() {
    const HttpServerOptions& options = shared_.options;
    Failure failure;
    const auto expect = [&](const char* what) {
      if (failure)
        fail("cannot listen on {} port {}: {}: {}", options.address, options.port, what, failure.message());
    };
    const serving::asio::ip::address address = serving::asio::ip::make_address(options.address, failure);
    expect("address");
    const Tcp::endpoint endpoint(address, static_cast<unsigned short>(options.port));
    acceptor_.open(endpoint.protocol(), failure);
    expect("open");
    acceptor_.set_option(Tcp::acceptor::reuse_address(true), failure);
    expect("reuse");
    acceptor_.bind(endpoint, failure);
    expect("bind");
    acceptor_.listen(serving::asio::socket_base::max_listen_connections, failure);
    expect("listen");
    port_ = acceptor_.local_endpoint().port();
  }

  void accept() {
    acceptor_.async_accept(serving::asio::make_strand(io_), [this](Failure failure, Tcp::socket socket) {
      if (failure == serving::asio::error::operation_aborted || shared_.stopping) return;
      if (failure) {  // of this connection, or too many open files: not faster than it can pass
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      } else if (shared_.connections < shared_.options.most_connections) {
        Failure ignored;
        socket.set_option(Tcp::no_delay(true), ignored);
        const auto session = std::make_shared<Session>(std::move(socket), shared_);
        remember(session);
        session->start();
      }
      accept();
    });
  }

  // Those that have ended leave when the list has doubled.
  void remember(const std::shared_ptr<Session>& session) {
    const std::scoped_lock lock(mutex_);
    if (sessions_.size() >= 2 * alive_ + 64) {
      std::erase_if(sessions_, [](const std::weak_ptr<Session>& open) { return open.expired(); });
      alive_ = sessions_.size();
    }
    sessions_.push_back(session);
  }

  serving::Shared shared_;  // before io_, which may own sessions
  serving::asio::io_context io_;
  // A connection that waits for its answer is no work of io_'s: without this its threads would end.
  serving::asio::executor_work_guard<serving::asio::io_context::executor_type> work_ =
      serving::asio::make_work_guard(io_);
  Tcp::acceptor acceptor_;
  int port_ = 0;
  std::mutex mutex_;
  std::vector<std::weak_ptr<Session>> sessions_;
  std::size_t alive_ = 0;
  std::vector<std::thread> threads_;
};

HttpServer::HttpServer(const HttpServerOptions& options, Handler handler)
    : impl_(std::make_unique<Impl>(options, std::move(handler))) {}

HttpServer::~HttpServer() = default;

void HttpServer::start() {
  impl_->start();
}
int HttpServer::port() const {
  return impl_->port();
}
std::int64_t HttpServer::connections() const {
  return impl_->connections();
}
void HttpServer::stop(double seconds) {
  impl_->stop(seconds);
}

}  // namespace hstu
