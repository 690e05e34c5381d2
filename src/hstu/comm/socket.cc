#include "hstu/comm/socket.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <thread>

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hstu/base/error.h"

namespace hstu {
namespace {

constexpr int kWaitingConnections = 1024;

std::string reason() {
  return std::strerror(errno);
}

int milliseconds_until(Deadline deadline) {
  return static_cast<int>(std::max(0.0, 1000 * seconds_between(Clock::now(), deadline)));
}

// False at the deadline.
bool wait_for(const Socket& socket, short events, Deadline deadline) {
  pollfd waited{socket.descriptor(), events, 0};
  return wait_for_any(std::span(&waited, 1), deadline);
}

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Addresses addresses_of(const std::string& host, int port) {
  addrinfo wanted{};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int status = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wanted, &found);
  if (status != 0)
    fail_usage("the host {} of rank 0 has no address: {}: correct the launcher's master address", host,
               ::gai_strerror(status));
  return {found, &::freeaddrinfo};
}

std::string in_numbers(const sockaddr_storage& address, socklen_t size) {
  std::array<char, NI_MAXHOST> name{};
  ::getnameinfo(reinterpret_cast<const sockaddr*>(&address), size, name.data(), name.size(), nullptr, 0,
                NI_NUMERICHOST);
  return name.data();
}

template <typename Call>
std::string address_by(const Call& call, const Socket& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  check(call(socket.descriptor(), reinterpret_cast<sockaddr*>(&address), &size) == 0,
        "a connection between ranks has no address: {}", reason());
  return in_numbers(address, size);
}

void set_blocking(const Socket& socket, bool blocking) {
  const int flags = ::fcntl(socket.descriptor(), F_GETFL);
  ::fcntl(socket.descriptor(), F_SETFL, blocking ? flags & ~O_NONBLOCK : flags | O_NONBLOCK);
}

}  // namespace

void Socket::close() {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}

bool wait_for_any(std::span<pollfd> waited, Deadline deadline) {
  int ready = 0;
  do ready = ::poll(waited.data(), waited.size(), milliseconds_until(deadline));
  while (ready < 0 && errno == EINTR);
  return ready > 0;
}

Listener listen_on(const std::string& host, int port) {
  const Addresses addresses = addresses_of(host.empty() ? "0.0.0.0" : host, port);
  for (const int family : {AF_INET, AF_INET6}) {
    for (const addrinfo* a = addresses.get(); a != nullptr; a = a->ai_next) {
      if (a->ai_family != family) continue;
      Socket socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
      if (!socket.is_open()) continue;
      const int yes = 1;
      ::setsockopt(socket.descriptor(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
      const bool bound = ::bind(socket.descriptor(), a->ai_addr, a->ai_addrlen) == 0;
      if (!bound && errno == EADDRNOTAVAIL) continue;
      if (!bound || ::listen(socket.descriptor(), kWaitingConnections) != 0)
        fail_usage("rank 0 cannot listen on port {}: {}: give the launcher another master port", port,
                   reason());
      sockaddr_in6 address{};  // the port of both families is at the same byte
      socklen_t size = sizeof address;
      ::getsockname(socket.descriptor(), reinterpret_cast<sockaddr*>(&address), &size);
      return {std::move(socket), ntohs(address.sin6_port)};
    }
  }
  return {};
}

Socket connect_to(const std::string& host, int port, Deadline deadline) {
  const Addresses addresses = addresses_of(host, port);
  do {
    for (const addrinfo* a = addresses.get(); a != nullptr; a = a->ai_next) {
      Socket socket(::socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol));
      set_blocking(socket, false);
      if (::connect(socket.descriptor(), a->ai_addr, a->ai_addrlen) != 0 &&
          (errno != EINPROGRESS || !wait_for(socket, POLLOUT, deadline)))
        continue;
      int error = 0;
      socklen_t size = sizeof error;
      ::getsockopt(socket.descriptor(), SOL_SOCKET, SO_ERROR, &error, &size);
      if (error == 0) return socket;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // rank 0 may not have started yet
  } while (Clock::now() < deadline);
  return {};
}

Socket accept_from(const Socket& listener, std::string* address) {
  set_blocking(listener, false);
  sockaddr_storage from{};
  socklen_t size = sizeof from;
  Socket socket(::accept4(listener.descriptor(), reinterpret_cast<sockaddr*>(&from), &size, SOCK_CLOEXEC));
  if (!socket.is_open()) return socket;
  *address = in_numbers(from, size);
  set_blocking(socket, false);
  return socket;
}

std::string address_of_peer(const Socket& socket) {
  return address_by(::getpeername, socket);
}

std::string address_of_this_side(const Socket& socket) {
  return address_by(::getsockname, socket);
}

bool is_loopback(std::string_view address) {
  return address.starts_with("127.") || address == "::1";
}

bool send_all(const Socket& socket, const void* data, std::size_t bytes, Deadline deadline) {
  const auto* at = static_cast<const std::byte*>(data);
  while (bytes > 0) {
    const ssize_t n = ::send(socket.descriptor(), at, bytes, MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN && errno != EINTR) return false;
    if (n < 0 && !wait_for(socket, POLLOUT, deadline)) return false;
    if (n > 0) at += n, bytes -= static_cast<std::size_t>(n);
  }
  return true;
}

bool receive_all(const Socket& socket, void* data, std::size_t bytes, Deadline deadline) {
  auto* at = static_cast<std::byte*>(data);
  while (bytes > 0) {
    const ssize_t n = ::recv(socket.descriptor(), at, bytes, 0);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) return false;
    if (n < 0 && !wait_for(socket, POLLIN, deadline)) return false;
    if (n > 0) at += n, bytes -= static_cast<std::size_t>(n);
  }
  return true;
}

bool has_ended(const Socket& socket) {
  pollfd state{socket.descriptor(), POLLRDHUP, 0};
  return ::poll(&state, 1, 0) == 1;
}

void set_immediate(const Socket& socket) {
  set_blocking(socket, false);
  const int yes = 1;
  ::setsockopt(socket.descriptor(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  ::setsockopt(socket.descriptor(), SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
}

}  // namespace hstu
