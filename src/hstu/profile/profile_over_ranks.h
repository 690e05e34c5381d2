// What a profile of several ranks has besides the profile of one: the collectives of each rank, the messages
// between GPUs, and the tracks of all ranks in one file.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "hstu/base/clock.h"
#include "hstu/comm/communicator.h"
#include "hstu/comm/device_transport.h"
#include "hstu/report/trace_events.h"

namespace hstu {

class CollectiveTimes final : public CollectiveTrace {
 public:
  explicit CollectiveTimes(const Communicator& comm) : comm_(comm) {}
  void begin(std::string_view name, std::int64_t bytes) override;
  void end() override;

  // The collectives since the last call, with their bytes, stages and numbers, which are equal on all ranks.
  // Milliseconds since `start`.
  std::vector<TraceEvent> take(Clock::time_point start);

 private:
  struct Range {
    std::string_view name, stage;
    std::int64_t bytes = 0, number = 0;
    Clock::time_point begin, end;
  };
  const Communicator& comm_;
  std::vector<Range> ranges_;
};

class ExchangeTimes final : public ExchangeTrace {
 public:
  explicit ExchangeTimes(const Communicator& comm) : comm_(comm) {}
  void begin(const Stream& stream, std::int64_t bytes) override;
  void end(const Stream& stream) override;

  // Times count from what `stream` holds now; forgets all exchanges.
  void restart(const Stream& stream);
  // The exchanges since then, named by their stages, with the bytes that they sent, in milliseconds since
  // then plus `begin_ms`: from the time when the streams came to them to the time when they were done, the
  // wait for other ranks included. Waits for them.
  std::vector<TraceEvent> take(double begin_ms);

 private:
  struct Range {
    std::string_view stage;
    std::int64_t bytes = 0;
    Event begin, end;
  };
  const Communicator& comm_;
  Event origin_;
  std::vector<Range> ranges_;
};

// Rank 0 gets the tracks of all ranks, with one process a rank and times since the earliest `start`; the
// others get none. `start` is what the times of `mine` count from. The clocks of different machines are
// compared when all leave a barrier, so ranges of two machines may be off by the time of a message. All ranks
// call it together.
std::vector<TraceTrack> gather_tracks(const std::vector<TraceTrack>& mine, Clock::time_point start,
                                      Communicator& comm);

}  // namespace hstu
