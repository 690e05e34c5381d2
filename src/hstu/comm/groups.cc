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

DividedRanks::Part::Part(const Group& world, int color, std::string_view name)
    : host(world.host.split(color, name)) {
  if (world.device != nullptr) device = world.device->part(*host);
  if (world.queue != nullptr)
    queue = std::make_unique<ExchangeQueue>(*host, device.get(), world.queue->stream());
}

DividedRanks::DividedRanks(const Group& world, GroupSizes sizes)
    : tensor_(world, world.rank() / checked(sizes, world.size()).tensor, "tensor"),
      context_(world, color_of_context(world.rank(), sizes), "context"),
      replicas_(world, world.rank() % sizes.tensor, "replicas"),
      groups_{world, tensor_.group(), context_.group(), replicas_.group()} {}

}  // namespace hstu
