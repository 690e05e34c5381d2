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
  Listener listener = listen_on(0, true);
  const int port = listener.port;
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      Meeting meeting{rank, ranks, "127.0.0.1", port, 7, {}};
      if (rank == 0) meeting.listener = std::move(listener.socket);
      body(*message_group(tcp_transport(std::move(meeting)), patience));
    });
  }
}

}  // namespace hstu
