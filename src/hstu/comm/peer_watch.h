// PeerWatch: a thread of a rank that watches the connections to the other ranks, so that work which waits for
// a process that has ended, and cannot notice it, is given up at once: messages between GPUs.
#pragma once

#include <atomic>
#include <functional>
#include <thread>

#include "hstu/comm/communicator.h"

namespace hstu {

class PeerWatch {
 public:
  // `is_idle`: whether nothing that was begun waits for another rank. `give_up` ends what waits. Both are
  // called by the watch's thread: when a rank has ended and is_idle() has not come true for `grace_seconds`,
  // in which what it sent before may still arrive, the watch says so on stderr and calls give_up(), once. A
  // rank that ends beside nothing that waits for it, such as one that is done first, is no matter.
  PeerWatch(const Communicator& comm, std::function<bool()> is_idle, std::function<void()> give_up,
            double grace_seconds = 1);
  ~PeerWatch();  // ends the thread; what it calls must live until then
  PeerWatch(const PeerWatch&) = delete;
  PeerWatch& operator=(const PeerWatch&) = delete;

  // Before something begins that needs the other ranks: throws EndedRank (transport.h) if one has ended.
  void check_all_run() const;
  // For what waits: throws EndedRank if it has been given up.
  void check_not_given_up() const;

 private:
  void watch(const std::stop_token& stop);
  [[noreturn]] void fail_for_ended() const;

  const Communicator& comm_;
  std::function<bool()> is_idle_;
  std::function<void()> give_up_;
  double grace_seconds_;
  std::atomic<int> ended_ = -1;  // a rank
  std::atomic<bool> given_up_ = false;
  std::jthread thread_;  // last: joined before the other members are destroyed
};

}  // namespace hstu
