// Whole exchanges of HTTP with the server, over its own socket: pipelined, chunked, cut. Every request that
// it reads, and at most one that it refuses, has one whole answer; the server goes on.
#include <algorithm>
#include <cerrno>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "fuzz/harness.h"
#include "hstu/serve/http_server.h"

namespace {

using namespace hstu;

constexpr std::int64_t kMostBody = 1000;

// Answers with the request's method as the type, and counts.
class Server {
 public:
  Server() { server_.start(); }
  int port() const { return server_.port(); }
  // Of an exchange that has ended: requests, and those that were refused.
  std::pair<int, int> take_counts() {
    for (int i = 0; server_.counts().connections > 0; ++i) {
      require(i < 100'000, "a connection does not end");
      ::usleep(50);
    }
    const std::scoped_lock lock(mutex_);
    return {std::exchange(requests_, 0), std::exchange(refused_, 0)};
  }

 private:
  void handle(HttpRequest request, const HttpServer::Respond& respond) {
    require(std::ssize(request.body) <= kMostBody, "a body of {} bytes", request.body.size());
    {
      const std::scoped_lock lock(mutex_);
      ++requests_;
    }
    respond({.content_type = request.method, .body = std::move(request.body)});
  }
  void refuse(int status) {
    static const std::set<int> known{400, 408, 413, 415, 417, 431, 501};
    require(known.contains(status), "status {}", status);
    const std::scoped_lock lock(mutex_);
    ++refused_;
  }

  std::mutex mutex_;
  int requests_ = 0, refused_ = 0;
  HttpServer server_{{.port = 0, .threads = 1, .most_body_bytes = kMostBody},
                     [this](HttpRequest request, const HttpServer::Respond& respond) {
                       handle(std::move(request), respond);
                     },
                     [this](int status, double) { refuse(status); }};
};

class Client {
 public:
  explicit Client(int port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in to{.sin_family = AF_INET,
                   .sin_port = htons(static_cast<std::uint16_t>(port)),
                   .sin_addr = {},
                   .sin_zero = {}};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    require(::connect(socket_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0, "cannot connect");
    const int yes = 1;
    ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    const linger at_once{.l_onoff = 1, .l_linger = 0};  // or the ports of many exchanges are used up
    ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    const timeval limit{.tv_sec = 5, .tv_usec = 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  }
  ~Client() { ::close(socket_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;  // it was refused
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
  }
  std::string receive_all() const {
    ::shutdown(socket_, SHUT_WR);
    std::string all;
    char part[4096];
    while (true) {
      const ssize_t n = ::recv(socket_, part, sizeof part, 0);
      require(n >= 0 || errno == ECONNRESET, "no end of the answers after: {}", all);
      if (n <= 0) return all;
      all.append(part, static_cast<std::size_t>(n));
    }
  }

 private:
  int socket_;
};

// Removes and returns what is before `end`; all of it has to be there.
std::string_view take_until(std::string_view& rest, std::string_view end) {
  const std::size_t at = rest.find(end);
  require(at != std::string_view::npos, "an answer is cut: {}", std::string(rest));
  const std::string_view part = rest.substr(0, at);
  rest.remove_prefix(at + end.size());
  return part;
}

std::string_view field(std::string_view header, std::string_view name) {
  std::size_t at = header.find("\r\n" + std::string(name) + ": ");
  require(at != std::string_view::npos, "no {} in {}", std::string(name), std::string(header));
  at += name.size() + 4;
  return header.substr(at, header.find("\r\n", at) - at);
}

// How many answers there are; each of them is whole.
int count_answers(std::string_view rest) {
  int answers = 0;
  while (!rest.empty()) {
    const std::string_view header = take_until(rest, "\r\n\r\n");
    require(header.starts_with("HTTP/1."), "no status line: {}", std::string(header));
    if (header.substr(9, 3) == "100") continue;
    ++answers;
    const auto length = static_cast<std::size_t>(std::stoul(std::string(field(header, "Content-Length"))));
    if (field(header, "Content-Type") == "HEAD" || (rest.empty() && header.substr(9, 1) != "2")) continue;
    require(length <= rest.size(), "a body of {} bytes is cut: {}", length, std::string(rest));
    rest.remove_prefix(length);
  }
  return answers;
}

// \x01 and a character: that one 20,000 times.
std::string expanded(std::string_view text) {
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x01' && i + 1 < text.size())
      bytes.append(20'000, text[++i]);
    else
      bytes += text[i];
  }
  return bytes;
}

}  // namespace

// Input: a byte that says in how many pieces the rest is sent, and whether its sender disappears then; the
// rest.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  static Server server;
  const std::string bytes = expanded(fuzz::text_of(data + 1, size - 1));
  const std::size_t pieces = 1 + (data[0] & 7U), piece = bytes.size() / pieces + 1;
  const bool disappears = (data[0] & 8U) != 0;
  int answers = 0;
  {
    const Client client(server.port());
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      if (at > 0) ::usleep(50);
      client.send(std::string_view(bytes).substr(at, piece));
    }
    if (!disappears) answers = count_answers(client.receive_all());
  }
  if (disappears) Client(server.port()).receive_all();  // the server has accepted the one before this one
  const auto [requests, refused] = server.take_counts();
  require(disappears || (refused <= 1 && answers == requests + refused),
          "{} answers to {} requests and {} refusals", answers, requests, refused);
  return 0;
}
