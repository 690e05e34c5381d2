// A group over TCP whose ranks are threads of the test.
#pragma once

#include <functional>
#include <thread>
#include <vector>

#include "hstu/comm/message_group.h"
#include "hstu/comm/socket.h"
#include "hstu/comm/tcp_transport.h"

namespace hstu {

inline void run_tcp_ranks(int ranks, const std::function<void(Communicator&)>& body, Patience patience = {}) {
  Listener listener = listen_on("127.0.0.1", 0);
  const int port = listener.port;
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      Meeting meeting{.rank = rank, .ranks = ranks, .host = "127.0.0.1", .port = port, .token = {7, 8}};
      if (rank == 0) meeting.listener = std::move(listener.socket);
      body(*message_group(tcp_transport(std::move(meeting)), patience));
    });
  }
}

}  // namespace hstu
