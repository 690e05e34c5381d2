// ExchangeQueue: the exchanges of one group of ranks that take place beside a rank's other work, one after
// another in the order of their submission. All ranks of the group submit the same ones in the same order.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <string_view>
#include <thread>

#include "hstu/comm/communicator.h"
#include "hstu/comm/device_transport.h"
#include "hstu/device/stream.h"

namespace hstu {

// On processors a thread exchanges, to which the communicator belongs from submit() until wait() or
// order_after() of the last exchange. GPUs exchange on a stream of their own.
class ExchangeQueue {
 public:
  using Fence = std::int64_t;  // an exchange and those before it; 0: none

  // Of a group, whose members live longer. `gpus`: between its GPUs, which exchange on `stream`; null: it
  // computes on processors.
  explicit ExchangeQueue(Communicator& host, DeviceTransport* gpus = nullptr, Stream stream = {});
  ~ExchangeQueue();  // as drop()
  ExchangeQueue(const ExchangeQueue&) = delete;
  ExchangeQueue& operator=(const ExchangeQueue&) = delete;

  // On processors exchange() is called by the queue's thread, when those before it are done. On GPUs it is
  // called now, and puts its work on stream(), behind that of `ready`. `stage`: a literal, of the
  // communicator.
  Fence submit(std::string_view stage, const Stream& ready, std::function<void()> exchange);

  // The host may read the results. Throws what an exchange has thrown, after which no other takes place, and
  // LostRank.
  void wait(Fence fence);
  // Later work of `stream` may read the results. On processors as wait().
  void order_after(Fence fence, const Stream& stream);
  // Leaves out what has not begun, and waits for what has: after an error elsewhere.
  void drop();

  const Stream& stream() const { return stream_; }

 private:
  struct Exchange {
    std::string_view stage;
    std::function<void()> run;
  };
  // Of the thread. Not inlined: its name in a stack says what a rank that waits was doing.
  [[gnu::noinline]] void exchange_all();

  Communicator& host_;
  DeviceTransport* gpus_;
  Stream stream_;

  std::mutex mutex_;  // guards the following
  std::condition_variable changed_;
  std::deque<Exchange> waiting_;
  Fence submitted_ = 0, done_ = 0;
  bool closed_ = false;
  std::exception_ptr failure_;
  std::jthread thread_;  // from the first exchange on; last: joined before the other members are destroyed
};

}  // namespace hstu
