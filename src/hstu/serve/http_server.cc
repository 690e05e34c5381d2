#include "hstu/serve/http_server.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>

#include "hstu/base/error.h"
#include "hstu/serve/http_session.h"

namespace hstu {

class HttpServer::Impl {
  using Tcp = serving::Tcp;
  using Failure = serving::Failure;
  using Session = serving::Session;

 public:
  Impl(const HttpServerOptions& options, Handler handler, Refused refused)
      : acceptor_(boost::asio::make_strand(io_)) {
    shared_.options = options;
    shared_.handler = std::move(handler);
    shared_.refused = std::move(refused);
    listen();
  }
  ~Impl() {
    if (!threads_.empty()) stop();
    shared_.long_bodies.join();
    io_.stop();
    for (std::thread& thread : threads_) thread.join();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void start() {
    accept();
    for (int i = 0; i < std::max(1, shared_.options.threads); ++i) threads_.emplace_back([this] { run(); });
  }
  int port() const { return port_; }
  HttpCounts counts() const {
    return {.connections = shared_.connections,
            .refused_connections = shared_.refused_connections,
            .failed_connections = shared_.failed_connections,
            .cut_requests = shared_.cut_requests,
            .closed = shared_.closed,
            .too_slow = shared_.too_slow,
            .lost = shared_.lost};
  }
  void drain() { shared_.is_draining = true; }

  std::int64_t stop() {
    const std::int64_t before = shared_.too_slow + shared_.lost;
    drain();
    shared_.is_ending = true;
    boost::asio::post(acceptor_.get_executor(), [this] {
      accept_waiting();
      Failure ignored;
      acceptor_.close(ignored);
    });
    while (accepts_) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    {
      const std::scoped_lock lock(mutex_);
      for (const std::weak_ptr<Session>& open : sessions_)
        if (const auto session = open.lock()) session->end_if_idle();
    }
    while (shared_.connections > 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return shared_.too_slow + shared_.lost - before;
  }

 private:
  // What a step of Asio or Beast throws ends its connection, not the thread.
  void run() noexcept {
    while (true) {
      try {
        io_.run();
        return;
      } catch (...) {
        ++shared_.failed_connections;
      }
    }
  }

  void listen() {
    const HttpServerOptions& options = shared_.options;
    Failure failure;
    const auto expect = [&](const char* what) {
      if (failure)
        fail("cannot listen on {} port {}: {}: {}", options.address, options.port, what, failure.message());
    };
    const boost::asio::ip::address address = boost::asio::ip::make_address(options.address, failure);
    expect("address");
    const Tcp::endpoint endpoint(address, static_cast<unsigned short>(options.port));
    acceptor_.open(endpoint.protocol(), failure);
    expect("open");
    acceptor_.set_option(Tcp::acceptor::reuse_address(true), failure);
    expect("reuse");
    acceptor_.bind(endpoint, failure);
    expect("bind");
    acceptor_.listen(boost::asio::socket_base::max_listen_connections, failure);
    expect("listen");
    port_ = acceptor_.local_endpoint().port();
  }

  void accept() noexcept {
    while ((accepts_ = acceptor_.is_open())) {
      try {
        acceptor_.async_accept(boost::asio::make_strand(io_),
                               [this](const Failure& failure, Tcp::socket socket) {
                                 if (acceptor_.is_open() || !failure) take(failure, std::move(socket));
                                 accept();
                               });
        return;
      } catch (...) {  // no memory
        pause();
      }
    }
  }
  // Those that the system has accepted before the server ends.
  void accept_waiting() noexcept {
    Failure failure;
    acceptor_.non_blocking(true, failure);
    while (!failure) {
      try {
        Tcp::socket socket = acceptor_.accept(boost::asio::make_strand(io_), failure);
        if (!failure) take(failure, std::move(socket));
      } catch (...) {
        pause();
      }
    }
  }
  // Of this connection, or there are too many open files: not faster than it can pass.
  void pause() {
    ++shared_.failed_connections;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  void take(Failure failure, Tcp::socket socket) noexcept {
    if (failure) return pause();
    if (shared_.connections >= shared_.options.most_connections) {
      ++shared_.refused_connections;
      return;
    }
    try {
      socket.set_option(Tcp::no_delay(true), failure);
      const auto session = std::make_shared<Session>(std::move(socket), shared_);
      remember(session);
      session->start();
    } catch (...) {
      pause();
    }
  }

  // Those that have ended are removed when the list has doubled.
  void remember(const std::shared_ptr<Session>& session) {
    const std::scoped_lock lock(mutex_);
    if (sessions_.size() >= 2 * alive_ + 64) {
      std::erase_if(sessions_, [](const std::weak_ptr<Session>& open) { return open.expired(); });
      alive_ = sessions_.size();
    }
    sessions_.push_back(session);
  }

  serving::SharedBySessions shared_;  // before io_, which may own sessions
  boost::asio::io_context io_;
  // A connection that waits for its answer is no work of io_'s: without this its threads would end.
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_ =
      boost::asio::make_work_guard(io_);
  Tcp::acceptor acceptor_;
  int port_ = 0;
  std::atomic<bool> accepts_ = false;
  std::mutex mutex_;
  std::vector<std::weak_ptr<Session>> sessions_;
  std::size_t alive_ = 0;
  std::vector<std::thread> threads_;
};

HttpServer::HttpServer(const HttpServerOptions& options, Handler handler, Refused refused)
    : impl_(std::make_unique<Impl>(options, std::move(handler), std::move(refused))) {}

HttpServer::~HttpServer() = default;

void HttpServer::start() {
  impl_->start();
}
int HttpServer::port() const {
  return impl_->port();
}
HttpCounts HttpServer::counts() const {
  return impl_->counts();
}
void HttpServer::drain() {
  impl_->drain();
}
std::int64_t HttpServer::stop() {
  return impl_->stop();
}

}  // namespace hstu
