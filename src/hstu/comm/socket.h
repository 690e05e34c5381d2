// TCP sockets: open, connect, accept, and whole messages until a deadline.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <poll.h>

#include "hstu/base/clock.h"

namespace hstu {

// Owns a descriptor.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  ~Socket() { close(); }
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }

  bool is_open() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }
  void close();

 private:
  int descriptor_ = -1;
};

struct Listener {
  Socket socket;
  int port = 0;
};
// Listens on `port` of the first address of `host` that this machine has, IPv4 before others; not open: it
// has none. Port 0: any free one. Host "": all addresses. UsageError if the port is taken or the name has no
// address.
Listener listen_on(const std::string& host, int port);

using Deadline = Clock::time_point;

// Tries until the deadline; not open if nobody listened there. UsageError if the name has no address.
Socket connect_to(const std::string& host, int port, Deadline deadline);
// The next connection and the address it came from; not open, with errno: there is none now.
Socket accept_from(const Socket& listener, std::string* address);
// False at the deadline, before one of them is ready.
bool wait_for_any(std::span<pollfd> waited, Deadline deadline);
// The addresses of both sides of a connection, in numbers.
std::string address_of_peer(const Socket& socket);
std::string address_of_this_side(const Socket& socket);
bool is_loopback(std::string_view address);

// False at the deadline, or when the other side has ended.
bool send_all(const Socket& socket, const void* data, std::size_t bytes, Deadline deadline);
bool receive_all(const Socket& socket, void* data, std::size_t bytes, Deadline deadline);

// Whether the other side sends nothing more: its process has ended, or has closed the connection. What it
// sent before may still be received.
bool has_ended(const Socket& socket);

// From now on calls return at once, and small messages leave at once.
void set_immediate(const Socket& socket);

}  // namespace hstu
