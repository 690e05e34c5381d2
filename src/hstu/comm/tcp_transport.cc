#include "hstu/comm/tcp_transport.h"

#include <algorithm>
#include <cerrno>
#include <deque>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/ranges.h>
#include <poll.h>
#include <sys/socket.h>

namespace hstu {
namespace {

class TcpTransport final : public Transport {
 public:
  TcpTransport(int rank, const GroupToken& token, std::vector<Socket> peers)
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
    // On the address by which the others have found this rank; more than one: on all.
    std::set<std::string> addresses;
    for (const Peer& p : peers_)
      if (p.socket.is_open()) addresses.insert(address_of_this_side(p.socket));
    listener_ = listen_on(addresses.size() == 1 ? *addresses.begin() : "", 0);
    return listener_.port;
  }
  std::unique_ptr<Transport> part(std::span<const int> members,
                                  std::span<const std::int64_t> offers) override {
    Meeting meeting{.rank = 0, .ranks = static_cast<int>(members.size()), .host = "this machine"};
    std::vector<RankAddress> addresses(members.size());
    for (std::size_t i = 0; i < members.size(); ++i) {
      const auto r = static_cast<std::size_t>(members[i]);
      if (members[i] == rank_)
        meeting.rank = static_cast<int>(i);
      else
        addresses[i].set(address_of_peer(peers_[r].socket), static_cast<int>(offers[r]));
    }
    meeting.port = listener_.port;
    meeting.listener = std::move(listener_.socket);
    meeting.token = derived_token(token_, fmt::format("part {}: {}", ++parts_, fmt::join(members, ",")));
    std::vector<Socket> peers = connect_ranks_at(meeting, std::move(addresses));
    return std::make_unique<TcpTransport>(meeting.rank, meeting.token, std::move(peers));
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
  GroupToken token_;
  std::vector<Peer> peers_;  // (ranks)
  std::uint64_t moved_ = 0;
  Listener listener_;  // between offer() and part()
  int parts_ = 0;      // so far
};

}  // namespace

std::unique_ptr<Transport> tcp_transport(Meeting meeting) {
  std::vector<Socket> peers = connect_ranks(meeting);
  return std::make_unique<TcpTransport>(meeting.rank, meeting.token, std::move(peers));
}

}  // namespace hstu
