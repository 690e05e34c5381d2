#include "hstu/comm/rendezvous.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <filesystem>
#include <string_view>
#include <thread>
#include <utility>

#include <fmt/ranges.h>
#include <poll.h>
#include <sys/socket.h>

#include "hstu/base/error.h"
#include "hstu/base/terminal.h"
#include "hstu/comm/transport.h"

namespace hstu {
namespace {

using Nonce = GroupToken;  // random, and used once

struct Hello {
  std::int32_t rank = 0, ranks = 0;
  std::int64_t port = 0;  // on which it listens
  Nonce nonce;
  std::uint64_t proof = 0;
};

template <typename T>
std::string_view bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

std::uint64_t proof_of_hello(const GroupToken& token, const Nonce& challenge, Hello hello) {
  hello.proof = 0;
  return proof_of(token, fmt::format("hello{}{}", bytes_of(challenge), bytes_of(hello)));
}
std::uint64_t proof_of_welcome(const GroupToken& token, const Nonce& challenge, const Hello& hello) {
  return proof_of(token, fmt::format("welcome{}{}", bytes_of(hello), bytes_of(challenge)));
}

// A connection whose Hello has not come, or not all of it.
struct Greeting {
  Socket socket;
  std::string address;
  Nonce challenge = random_token();
  Hello hello = {};
  std::size_t received = 0;
};

class Rendezvous {
 public:
  explicit Rendezvous(Meeting& meeting)
      : meeting_(meeting),
        deadline_(Clock::now() +
                  std::chrono::milliseconds(static_cast<std::int64_t>(1000 * meeting_.seconds))),
        mine_{std::move(meeting.listener), meeting.port},
        peers_(static_cast<std::size_t>(meeting_.ranks)),
        addresses_(peers_.size()) {}

  std::vector<Socket> connect() {
    if (meeting_.rank == 0) {
      publish_token();
      if (!mine_.socket.is_open()) mine_ = listen_as_rank_0();
      accept_all(1);
      for (std::size_t r = 1; r < peers_.size(); ++r) send_addresses(r);
      return connected();
    }
    greet(0, meeting_.host, meeting_.port);
    meeting_.token_file.clear();  // which rank 0 removes
    if (!receive_all(peers_[0], addresses_.data(), bytes_of_addresses(), deadline_)) refused(0);
    return meet_others(1);
  }

  std::vector<Socket> connect_at(std::vector<RankAddress> addresses) {
    addresses_ = std::move(addresses);
    return meet_others(0);
  }

  ~Rendezvous() {
    std::error_code ignored;
    if (published_) std::filesystem::remove(meeting_.token_file, ignored);
  }
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

 private:
  void publish_token() {
    if (meeting_.token_file.empty()) return;
    meeting_.token = random_token();
    write_token(meeting_.token_file, meeting_.token);
    published_ = true;
  }

  // On the address by which the others look for it. A name may be the loopback address on its own machine,
  // and an address may be one that a gateway translates.
  Listener listen_as_rank_0() const {
    const std::string& host = meeting_.host;
    const bool means_loopback = host == "localhost" || is_loopback(host);
    {
      Listener listener = listen_on(host, meeting_.port);
      if (listener.socket.is_open() &&
          (means_loopback || !is_loopback(address_of_this_side(listener.socket))))
        return listener;
    }
    print_note(
        "note: {} is no address of this machine that ranks of others reach: rank 0 listens on all of its "
        "addresses\n",
        host);
    return listen_on("", meeting_.port);
  }

  // Connects to the ranks from `first` to this one, and waits for those after it.
  std::vector<Socket> meet_others(int first) {
    for (int r = first; r < meeting_.rank; ++r) {
      const RankAddress& of = addresses_[static_cast<std::size_t>(r)];
      greet(r, of.host.data(), of.port);
    }
    accept_all(meeting_.rank + 1);
    return connected();
  }

  std::vector<Socket> connected() {
    for (const Socket& peer : peers_)
      if (peer.is_open()) set_immediate(peer);
    return std::move(peers_);
  }

  std::size_t bytes_of_addresses() const { return addresses_.size() * sizeof(RankAddress); }
  void send_addresses(std::size_t rank) const {
    if (!send_all(peers_[rank], addresses_.data(), bytes_of_addresses(), deadline_))
      refused(static_cast<int>(rank));
  }

  [[noreturn]] void refused(int rank) const {
    throw EndedRank(fmt::format("rank {}: rank {} ended the connection before the group was complete",
                                meeting_.rank, rank));
  }

  // Until that rank has proved that it is one of the group. What answers may be a stranger, or a rank 0 that
  // has not written its token yet.
  void greet(int rank, const std::string& host, int port) {
    bool answered = false;
    do {
      Socket peer = connect_to(host, port, deadline_);
      if (!peer.is_open() && !answered)
        fail_usage(
            "rank {} cannot reach rank {} at {}:{} within {:.0f} s: is the host right, and has that rank "
            "started?",
            meeting_.rank, rank, host, port, meeting_.seconds);
      answered = true;
      if (peer.is_open() && is_welcome(peer)) {
        peers_[static_cast<std::size_t>(rank)] = std::move(peer);
        return;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    } while (Clock::now() < deadline_);
    fail_usage(
        "rank {}: what answers at {}:{} does not prove within {:.0f} s that it is rank {} of this group: "
        "does another "
        "program listen there{}?",
        meeting_.rank, host, port, meeting_.seconds, rank,
        meeting_.token_file.empty()
            ? ", or have the ranks other tokens"
            : ", or does this rank not see " + meeting_.token_file.string() + ", which rank 0 writes");
  }

  bool is_welcome(const Socket& peer) {
    Nonce challenge;
    if (!receive_all(peer, &challenge, sizeof challenge, deadline_)) return false;
    if (!meeting_.token_file.empty()) {
      const auto token = read_token(meeting_.token_file);
      if (!token) return false;
      meeting_.token = *token;
    }
    if (!mine_.socket.is_open()) mine_ = listen_on(address_of_this_side(peer), 0);
    Hello hello{meeting_.rank, meeting_.ranks, mine_.port, random_token(), 0};
    hello.proof = proof_of_hello(meeting_.token, challenge, hello);
    std::uint64_t welcome = 0;
    return send_all(peer, &hello, sizeof hello, deadline_) &&
           receive_all(peer, &welcome, sizeof welcome, deadline_) &&
           welcome == proof_of_welcome(meeting_.token, challenge, hello);
  }

  // Until the ranks from `first` on are connected. All greetings are heard side by side: who says nothing
  // delays nobody.
  void accept_all(int first) {
    std::deque<Greeting> greetings;  // the oldest first
    while (!missing(first).empty()) {
      std::vector<pollfd> waited{{mine_.socket.descriptor(), POLLIN, 0}};
      for (const Greeting& greeting : greetings) waited.push_back({greeting.socket.descriptor(), POLLIN, 0});
      if (!wait_for_any(waited, deadline_))
        fail_usage(
            "rank {} has waited {:.0f} s for rank {}, which did not come: have all {} ranks been started, "
            "and can they reach {}:{}?",
            meeting_.rank, meeting_.seconds, fmt::join(missing(first), ", "), meeting_.ranks, meeting_.host,
            meeting_.port);
      for (std::size_t g = greetings.size(); g-- > 0;)
        if (waited[g + 1].revents != 0 && has_heard(greetings[g], first))
          greetings.erase(greetings.begin() + static_cast<std::ptrdiff_t>(g));
      if (waited[0].revents != 0) accept_one(greetings);
    }
  }

  void accept_one(std::deque<Greeting>& greetings) const {
    const std::size_t most = peers_.size() + 128;  // all ranks at once, and some strangers
    Greeting next;
    next.socket = accept_from(mine_.socket, &next.address);
    const bool no_descriptors = !next.socket.is_open() && (errno == EMFILE || errno == ENFILE);
    if (no_descriptors) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    if (!greetings.empty() && (no_descriptors || greetings.size() == most)) greetings.pop_front();
    if (next.socket.is_open() && send_all(next.socket, &next.challenge, sizeof next.challenge, Clock::now()))
      greetings.push_back(std::move(next));
  }

  // True: the greeting is over; its connection is one of the group, or closed.
  bool has_heard(Greeting& greeting, int first) {
    char* const to = reinterpret_cast<char*>(&greeting.hello) + greeting.received;
    const ssize_t n = ::recv(greeting.socket.descriptor(), to, sizeof(Hello) - greeting.received, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (n <= 0) return true;
    greeting.received += static_cast<std::size_t>(n);
    if (greeting.received < sizeof(Hello)) return false;
    const Hello& hello = greeting.hello;
    if (hello.proof != proof_of_hello(meeting_.token, greeting.challenge, hello)) return true;
    admit(greeting, first);
    return true;
  }

  void admit(Greeting& greeting, int first) {
    const Hello& hello = greeting.hello;
    if (hello.ranks != meeting_.ranks || hello.rank < first || hello.rank >= meeting_.ranks)
      fail_usage(
          "a process at {} calls itself rank {} of {}, expected ranks {} to {} of {}: correct the launcher",
          greeting.address, hello.rank, hello.ranks, first, meeting_.ranks - 1, meeting_.ranks);
    Socket& peer = peers_[static_cast<std::size_t>(hello.rank)];
    if (peer.is_open() && !has_ended(peer))
      fail_usage("two processes call themselves rank {}: correct the launcher", hello.rank);
    const std::uint64_t welcome = proof_of_welcome(meeting_.token, greeting.challenge, hello);
    if (!send_all(greeting.socket, &welcome, sizeof welcome, Clock::now())) return;
    peer = std::move(greeting.socket);
    addresses_[static_cast<std::size_t>(hello.rank)].set(greeting.address, static_cast<int>(hello.port));
  }

  std::vector<int> missing(int first) const {
    std::vector<int> ranks;
    for (int r = first; r < meeting_.ranks; ++r)
      if (!peers_[static_cast<std::size_t>(r)].is_open()) ranks.push_back(r);
    return ranks;
  }

  Meeting& meeting_;
  Deadline deadline_;
  Listener mine_;
  bool published_ = false;
  std::vector<Socket> peers_;           // (ranks); this rank's own is not open
  std::vector<RankAddress> addresses_;  // (ranks)
};

}  // namespace

std::vector<Socket> connect_ranks(Meeting& meeting) {
  return Rendezvous(meeting).connect();
}

std::vector<Socket> connect_ranks_at(Meeting& meeting, std::vector<RankAddress> addresses) {
  return Rendezvous(meeting).connect_at(std::move(addresses));
}

}  // namespace hstu
