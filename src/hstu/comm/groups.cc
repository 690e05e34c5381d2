#include "hstu/comm/groups.h"

namespace hstu {
namespace {

GroupSizes checked(const GroupSizes& sizes, int ranks) {
  if (sizes.tensor < 1 || sizes.context < 1 || ranks % (sizes.tensor * sizes.context) != 0) {
    fail_usage("{} ranks cannot be divided into tensor groups of {} and context groups of {}", ranks,
               sizes.tensor, sizes.context);
  }
  return sizes;
}

int color_of_context(int rank, const GroupSizes& sizes) {
  return rank / (sizes.tensor * sizes.context) * sizes.tensor + rank % sizes.tensor;
}

}  // namespace

DividedRanks::Part::Part(Communicator& world, DeviceTransport* gpus, int color, std::string_view name)
    : host(world.split(color, name)), device(gpus != nullptr ? gpus->part(*host) : nullptr) {}

DividedRanks::DividedRanks(Communicator& world, DeviceTransport* gpus, GroupSizes sizes)
    : tensor_(world, gpus, world.rank() / checked(sizes, world.size()).tensor, "tensor"),
      context_(world, gpus, color_of_context(world.rank(), sizes), "context"),
      replicas_(world, gpus, world.rank() % sizes.tensor, "replicas"),
      groups_{{world, gpus}, tensor_.group(), context_.group(), replicas_.group()} {}

}  // namespace hstu
