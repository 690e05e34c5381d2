// How the ranks of a group find each other over TCP, and keep strangers out (docs/ranks.md).
//
// A connection begins with numbers that are used once, and a proof on each side that it knows the group's
// token:
//   who accepts    Nonce
//   who connects   Hello, with its own Nonce and the proof of both
//   who accepts    Welcome, the proof of both in its turn
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "hstu/base/files.h"
#include "hstu/comm/group_token.h"
#include "hstu/comm/socket.h"

namespace hstu {

struct Meeting {
  int rank = 0, ranks = 1;
  std::string host;       // of rank 0: a name or an address
  int port = 0;           // on which rank 0 listens
  GroupToken token = {};  // equal on all ranks
  Path token_file =
      {};  // where rank 0 writes a new token, and the others read it; "": all have the one above
  Socket listener = {};  // a socket that listens already; otherwise a rank opens one
  double seconds = 60;   // by when all must have come
};

// Where a rank listens, as another one sees it.
struct RankAddress {
  std::array<char, 64> host{};
  std::int32_t port = 0;

  void set(const std::string& name, int number) {
    name.copy(host.data(), host.size() - 1);
    port = number;
  }
};

// Connects every rank to every other one: all to rank 0, which sends the addresses of all, then each rank to
// the ranks before it. Returns the connections (ranks), of which this rank's own is not open, and sets
// meeting.token. UsageError naming the ranks, or the host and port, that could not be reached in time, and a
// rank whose number or group size does not fit.
std::vector<Socket> connect_ranks(Meeting& meeting);

// The same where all ranks listen already, at `addresses` (ranks).
std::vector<Socket> connect_ranks_at(Meeting& meeting, std::vector<RankAddress> addresses);

}  // namespace hstu
