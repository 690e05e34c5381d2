// The speed of messages between every two ranks of a group, one message at a time: what
// `hstu doctor --ranks` prints.
#pragma once

#include <cstdint>
#include <vector>

#include "hstu/comm/device_transport.h"

namespace hstu {

struct LinkSpeeds {
  int ranks = 0;
  std::vector<double> bytes_per_second;  // (ranks, ranks), from the row to the column; 0 on the diagonal

  double between(int from, int to) const {
    return bytes_per_second[static_cast<std::size_t>(from) * static_cast<std::size_t>(ranks) +
                            static_cast<std::size_t>(to)];
  }
};

// Of messages of `bytes` > 0 through the communicator itself, the fastest of several for each pair. All ranks
// call it together and get the same result; ranks outside a pair wait. Splits `comm` for each pair.
LinkSpeeds measure_links(Communicator& comm, std::int64_t bytes);

// The same between the memories of the ranks' devices, `device` on this rank, through `transport`, whose
// ranks are those of `comm`.
LinkSpeeds measure_links(Communicator& comm, DeviceTransport& transport, Device device, std::int64_t bytes);

}  // namespace hstu
