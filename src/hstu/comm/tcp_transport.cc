#include "hstu/comm/tcp_transport.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <deque>
#include <utility>

#include <fmt/ranges.h>
#include <poll.h>
#include <sys/socket.h>

#include "hstu/base/random.h"

namespace hstu {
namespace {

// What a rank sends first on a connection.
struct Hello {
  std::uint64_t token = 0;
  std::int32_t rank = 0, ranks = 0;
  std::int32_t port = 0;  // on which it listens
};

// Where a rank listens, as another one sees it.
struct Address {
  std::array<char, 64> host{};
  std::int32_t port = 0;

  void set(const std::string& name, int number) {
    name.copy(host.data(), host.size() - 1);
    port = number;
  }
};

// Connects every rank to every other one: all to rank 0, which sends the addresses of all, then each rank to
// the ranks before it.
class Rendezvous {
 public:
  explicit Rendezvous(Meeting meeting)
      : meeting_(std::move(meeting)),
        deadline_(Clock::now() +
                  std::chrono::milliseconds(static_cast<std::int64_t>(1000 * meeting_.seconds))),
        peers_(static_cast<std::size_t>(meeting_.ranks)),
        addresses_(peers_.size()) {}

  std::vector<Socket> connect() {
    Listener mine = meeting_.listener.is_open() ? Listener{std::move(meeting_.listener), meeting_.port}
                                                : listen_on(meeting_.rank == 0 ? meeting_.port : 0, false);
    if (meeting_.rank == 0) {
      accept_all(mine.socket, 1);
      for (std::size_t r = 1; r < peers_.size(); ++r) send(r, addresses_.data(), bytes_of_addresses());
    } else {
      greet(0, meeting_.host, meeting_.port, mine.port);
      if (!receive_all(peers_[0], addresses_.data(), bytes_of_addresses(), deadline_)) refused(0);
      meet_others(mine, 1);
    }
    return connected();
  }

  // The same where all ranks listen already, at `addresses` (ranks).
  std::vector<Socket> connect_at(std::vector<Address> addresses) {
    addresses_ = std::move(addresses);
    meet_others({std::move(meeting_.listener), meeting_.port}, 0);
    return connected();
  }

 private:
  // Connects to the ranks from `first` to this one, and waits for those after it.
  void meet_others(const Listener& mine, int first) {
    for (int r = first; r < meeting_.rank; ++r) {
      const Address& of = addresses_[static_cast<std::size_t>(r)];
      greet(r, of.host.data(), of.port, mine.port);
    }
    accept_all(mine.socket, meeting_.rank + 1);
  }

  std::vector<Socket> connected() {
    for (const Socket& peer : peers_)
      if (peer.is_open()) set_immediate(peer);
    return std::move(peers_);
  }

  std::size_t bytes_of_addresses() const { return addresses_.size() * sizeof(Address); }

  void greet(int rank, const std::string& host, int port, int my_port) {
    Socket& peer = peers_[static_cast<std::size_t>(rank)];
    peer = connect_to(host, port, deadline_);
    if (!peer.is_open())
      fail_usage(
          "rank {} cannot reach rank {} at {}:{} within {:.0f} s: is the host right, and has that rank "
          "started?",
          meeting_.rank, rank, host, port, meeting_.seconds);
    const Hello hello{meeting_.token, meeting_.rank, meeting_.ranks, my_port};
    send(static_cast<std::size_t>(rank), &hello, sizeof hello);
  }

  void send(std::size_t rank, const void* data, std::size_t bytes) {
    if (!send_all(peers_[rank], data, bytes, deadline_)) refused(static_cast<int>(rank));
  }

  [[noreturn]] void refused(int rank) const {
    throw EndedRank(fmt::format("rank {}: rank {} ended the connection before the group was complete",
                                meeting_.rank, rank));
  }

  // Until the ranks from `first` on are connected. A stranger's connection is dropped.
  void accept_all(const Socket& listener, int first) {
    for (int left = meeting_.ranks - first; left > 0;) {
      std::string address;
      Socket socket = accept_from(listener, deadline_, &address);
      if (!socket.is_open())
        fail_usage(
            "rank {} has waited {:.0f} s for rank {}, which did not come: have all {} ranks been started, "
            "and "
            "can they reach {}:{}?",
            meeting_.rank, meeting_.seconds, fmt::join(missing(first), ", "), meeting_.ranks, meeting_.host,
            meeting_.port);
      Hello hello;
      if (!receive_all(socket, &hello, sizeof hello, deadline_) || hello.token != meeting_.token) continue;
      if (hello.ranks != meeting_.ranks || hello.rank < first || hello.rank >= meeting_.ranks)
        fail_usage(
            "a process at {} calls itself rank {} of {}, expected ranks {} to {} of {}: correct the launcher",
            address, hello.rank, hello.ranks, first, meeting_.ranks - 1, meeting_.ranks);
      Socket& peer = peers_[static_cast<std::size_t>(hello.rank)];
      if (peer.is_open())
        fail_usage("two processes call themselves rank {}: correct the launcher", hello.rank);
      peer = std::move(socket);
      addresses_[static_cast<std::size_t>(hello.rank)].set(address, hello.port);
      --left;
    }
  }

  std::vector<int> missing(int first) const {
    std::vector<int> ranks;
    for (int r = first; r < meeting_.ranks; ++r)
      if (!peers_[static_cast<std::size_t>(r)].is_open()) ranks.push_back(r);
    return ranks;
  }

  Meeting meeting_;
  Deadline deadline_;
  std::vector<Socket> peers_;       // (ranks); this rank's own is not open
  std::vector<Address> addresses_;  // (ranks)
};

class TcpTransport final : public Transport {
 public:
  TcpTransport(int rank, std::uint64_t token, std::vector<Socket> peers)
      : rank_(rank), token_(token), peers_(peers.size()) {
    for (std::size_t r = 0; r < peers.size(); ++r) peers_[r].socket = std::move(peers[r]);
  }

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(peers_.size()); }

  void send(int to, const void* data, std::size_t bytes) override {
    if (bytes > 0) peer(to).sends.push_back({static_cast<const std::byte*>(data), bytes});
  }
  void receive(int from, void* data, std::size_t bytes) override {
    if (bytes > 0) peer(from).receives.push_back({static_cast<std::byte*>(data), bytes});
  }

  bool progress(int milliseconds) override {
    move_all();
    if (is_idle()) return true;
    std::vector<pollfd> waited;
    for (const Peer& p : peers_) {
      const auto events =
          static_cast<short>((p.sends.empty() ? 0 : POLLOUT) | (p.receives.empty() ? 0 : POLLIN));
      if (events != 0) waited.push_back({p.socket.descriptor(), events, 0});
    }
    ::poll(waited.data(), waited.size(), milliseconds);
    move_all();
    return is_idle();
  }

  std::uint64_t bytes_moved() const override { return moved_; }

  std::vector<int> waiting_for() const override {
    std::vector<int> ranks;
    for (std::size_t r = 0; r < peers_.size(); ++r)
      if (!peers_[r].sends.empty() || !peers_[r].receives.empty()) ranks.push_back(static_cast<int>(r));
    return ranks;
  }

  int ended_rank() const override {
    for (std::size_t r = 0; r < peers_.size(); ++r)
      if (peers_[r].socket.is_open() && has_ended(peers_[r].socket)) return static_cast<int>(r);
    return -1;
  }

  // A group has connections of its own: the system keeps its messages apart, and holds a sender up when only
  // its receiver is late.
  std::int64_t offer() override {
    listener_ = listen_on(0, false);
    return listener_.port;
  }
  std::unique_ptr<Transport> part(std::span<const int> members,
                                  std::span<const std::int64_t> offers) override {
    Meeting meeting{.rank = 0, .ranks = static_cast<int>(members.size()), .host = "this machine"};
    std::vector<Address> addresses(members.size());
    for (std::size_t i = 0; i < members.size(); ++i) {
      const auto r = static_cast<std::size_t>(members[i]);
      if (members[i] == rank_)
        meeting.rank = static_cast<int>(i);
      else
        addresses[i].set(address_of_peer(peers_[r].socket), static_cast<int>(offers[r]));
    }
    meeting.port = listener_.port;
    meeting.listener = std::move(listener_.socket);
    meeting.token = derive_key(token_, fmt::format("part {}: {}", ++parts_, fmt::join(members, ",")));
    const int rank = meeting.rank;
    const std::uint64_t token = meeting.token;
    return std::make_unique<TcpTransport>(rank, token,
                                          Rendezvous(std::move(meeting)).connect_at(std::move(addresses)));
  }

 private:
  template <typename Byte>
  struct Message {
    Byte* at;
    std::size_t left;
  };
  struct Peer {
    Socket socket;
    std::deque<Message<const std::byte>> sends;
    std::deque<Message<std::byte>> receives;
  };

  Peer& peer(int rank) { return peers_[static_cast<std::size_t>(rank)]; }
  bool is_idle() const {
    return std::all_of(peers_.begin(), peers_.end(),
                       [](const Peer& p) { return p.sends.empty() && p.receives.empty(); });
  }

  void move_all() {
    for (std::size_t r = 0; r < peers_.size(); ++r) {
      Peer& p = peers_[r];
      const int socket = p.socket.descriptor();
      move(r, p.sends, [&](const auto& m) { return ::send(socket, m.at, m.left, MSG_NOSIGNAL); });
      move(r, p.receives, [&](const auto& m) { return ::recv(socket, m.at, m.left, 0); });
    }
  }

  // As much as the connection takes now.
  template <typename Messages, typename Call>
  void move(std::size_t rank, Messages& messages, const Call& call) {
    while (!messages.empty()) {
      const ssize_t n = call(messages.front());
      if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
      if (n <= 0) throw PeerEnded{static_cast<int>(rank)};
      moved_ += static_cast<std::uint64_t>(n);
      messages.front().at += n;
      messages.front().left -= static_cast<std::size_t>(n);
      if (messages.front().left == 0) messages.pop_front();
    }
  }

  int rank_;
  std::uint64_t token_;
  std::vector<Peer> peers_;  // (ranks)
  std::uint64_t moved_ = 0;
  Listener listener_;  // between offer() and part()
  int parts_ = 0;      // so far
};

}  // namespace

std::unique_ptr<Transport> tcp_transport(Meeting meeting) {
  const int rank = meeting.rank;
  const std::uint64_t token = meeting.token;
  return std::make_unique<TcpTransport>(rank, token, Rendezvous(std::move(meeting)).connect());
}

}  // namespace hstu
