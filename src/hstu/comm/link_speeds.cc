#include "hstu/comm/link_speeds.h"

#include <algorithm>
#include <limits>
#include <memory>

#include "hstu/base/clock.h"
#include "hstu/device/memory_pool.h"

namespace hstu {
namespace {

constexpr int kRounds = 4;  // of a pair; its connections are made, and grow fast, in the first

// ready() returns when both ranks of a pair have come to it; then message() on the rank that receives is
// timed.
template <typename Ready, typename Message>
double seconds_of_fastest(const Ready& ready, const Message& message) {
  double fastest = std::numeric_limits<double>::infinity();
  for (int round = 0; round < kRounds; ++round) {
    ready();
    const Clock::time_point begin = Clock::now();
    message();
    if (round > 0) fastest = std::min(fastest, seconds_between(begin, Clock::now()));
  }
  return fastest;
}

// seconds(from, to), which all ranks call together: the time of a message as rank `to` sees it.
template <typename Seconds>
LinkSpeeds of_all_pairs(Communicator& comm, std::int64_t bytes, const Seconds& seconds) {
  const int n = comm.size();
  std::vector<double> to_me(static_cast<std::size_t>(n), 0);
  for (int from = 0; from < n; ++from) {
    for (int to = 0; to < n; ++to) {
      if (from == to) continue;
      const double fastest = seconds(from, to);
      if (comm.rank() == to) to_me[static_cast<std::size_t>(from)] = static_cast<double>(bytes) / fastest;
    }
  }
  const std::vector<double> all = comm.all_gather(std::span<const double>(to_me));
  LinkSpeeds speeds{n, std::vector<double>(all.size())};
  const auto ranks = static_cast<std::size_t>(n);
  for (std::size_t to = 0; to < ranks; ++to)
    for (std::size_t from = 0; from < ranks; ++from)
      speeds.bytes_per_second[from * ranks + to] = all[to * ranks + from];
  return speeds;
}

}  // namespace

LinkSpeeds measure_links(Communicator& comm, std::int64_t bytes) {
  std::vector<char> memory(static_cast<std::size_t>(bytes));
  return of_all_pairs(comm, bytes, [&](int from, int to) {
    const bool in_pair = comm.rank() == from || comm.rank() == to;
    const auto pair = comm.split(in_pair ? 0 : 1, "links");
    if (!in_pair) return 0.0;
    return seconds_of_fastest([&] { pair->barrier(); },
                              [&] { pair->broadcast(std::span(memory), from < to ? 0 : 1); });
  });
}

LinkSpeeds measure_links(Communicator& comm, DeviceTransport& transport, Device device, std::int64_t bytes) {
  make_current(device);
  const Stream stream(device);
  const auto pool = MemoryPool::create(stream);
  const Buffer memory = pool->allocate(bytes);
  set_zero(memory.data(), static_cast<std::size_t>(bytes), stream);
  return of_all_pairs(comm, bytes, [&](int from, int to) {
    std::vector<DeviceMessage> sends, receives;
    if (comm.rank() == from) sends.push_back({to, memory.data(), bytes});
    if (comm.rank() == to) receives.push_back({from, memory.data(), bytes});
    return seconds_of_fastest(
        [&] {
          stream.synchronize();
          comm.barrier();
        },
        [&] {
          transport.exchange(sends, receives, stream);
          transport.wait(transport.begun());
          stream.synchronize();
        });
  });
}

}  // namespace hstu
