// The groups of ranks among which a model is divided.
#pragma once

#include <cstdint>
#include <memory>

#include "hstu/comm/communicator.h"
#include "hstu/comm/device_transport.h"
#include "hstu/comm/exchange_queue.h"

namespace hstu {

// Some of the ranks. All members live longer.
struct Group {
  Communicator& host = one_rank();
  DeviceTransport* device = nullptr;  // between the group's GPUs; null: its ranks compute on processors
  ExchangeQueue* queue = nullptr;     // of exchanges beside other work; null: none

  int rank() const { return host.rank(); }  // 0 .. size() - 1
  int size() const { return host.size(); }
};

// Every rank has samples of its own, in all groups.
struct Groups {
  Group world;
  Group tensor;                    // each rank has a part of every divided parameter
  Group context;                   // long samples are cut into a part for each rank
  Group replicas;                  // all ranks of the world with the same parts of parameters
  std::int64_t context_above = 0;  // tokens; samples with more are long
};

// The ranks that sum the gradients of divided parameters, and that share the optimizer's state. Without
// groups: the world.
inline Group replicas_of(const Groups* groups, const Group& world) {
  return groups != nullptr ? groups->replicas : world;
}

struct GroupSizes {
  int tensor = 1, context = 1;  // ranks of one group
};

// The groups of a rank. Consecutive ranks form a tensor group; ranks of consecutive tensor groups, at the
// same place in them, form a context group.
class DividedRanks {
 public:
  // All ranks call it together; the members of `world` must outlive this. The groups have queues if the world
  // has one. UsageError unless `sizes` are at least 1 and their product divides the number of ranks.
  DividedRanks(const Group& world, GroupSizes sizes);

  const Groups& groups() const { return groups_; }

 private:
  struct Part {
    Part(const Group& world, int color, std::string_view name);
    Group group() const { return {*host, device.get(), queue.get()}; }
    std::unique_ptr<Communicator> host;
    std::unique_ptr<DeviceTransport> device;
    std::unique_ptr<ExchangeQueue> queue;
  };

  Part tensor_, context_, replicas_;
  Groups groups_;
};

}  // namespace hstu
