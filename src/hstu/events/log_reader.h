// Reads a whole log with several threads and delivers its events in the order of the log.
#pragma once

#include <cstdint>
#include <functional>

#include "hstu/events/event_extractor.h"
#include "hstu/events/log_files.h"

namespace hstu {

struct LogReading {
  int threads = 1;
  std::int64_t batch_rows = std::int64_t{1} << 16;    // of a chunk, at most
  std::int64_t queue_bytes = std::int64_t{64} << 20;  // of chunks that wait for their turn, approximately
};

// Calls `consume` on this thread for every chunk of the log, in the order of the log. A chunk without
// events has remarks or says how many rows were left out. Before that, the thread that read a chunk with
// events calls `refine` for it. After all threads have ended, throws the first error in the order of the log.
void read_log(const LogFiles& log, const EventExtractor& extractor, const LogReading& reading,
              const std::function<void(LogChunk&)>& refine, const std::function<void(LogChunk)>& consume);

}  // namespace hstu
