#include "hstu/experiment/rank_device.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "hstu/base/error.h"
#include "hstu/base/terminal.h"
#include "hstu/device/machine.h"

namespace hstu {
namespace {

using Name = std::array<char, 64>;

// The names of all ranks, in their order.
std::vector<std::string> names_of_all(const std::string& mine, Communicator& comm) {
  Name name{};
  std::copy_n(mine.begin(), std::min(mine.size(), name.size() - 1), name.begin());
  const std::vector<char> all = comm.all_gather(std::span<const char>(name));
  std::vector<std::string> names;
  for (std::size_t r = 0; r < static_cast<std::size_t>(comm.size()); ++r)
    names.emplace_back(all.data() + r * name.size());
  return names;
}

// The number of this rank among those of its machine.
int rank_on_machine(Communicator& comm) {
  const std::vector<std::string> machines = names_of_all(this_boot(), comm);
  const auto me = machines.begin() + comm.rank();
  return static_cast<int>(std::count(machines.begin(), me, *me));
}

// "host" is no GPU.
void check_devices(const std::vector<std::string>& devices, bool may_share) {
  for (std::size_t r = 1; r < devices.size(); ++r) {
    if ((devices[r] == "host") != (devices[0] == "host")) {
      fail_usage(
          "rank {} computes on {} and rank 0 on {}: set device = \"host\", or start as many ranks on each "
          "machine as it has GPUs",
          r, devices[r] == "host" ? "the processor" : "a GPU",
          devices[0] == "host" ? "the processor" : "a GPU");
    }
    if (devices[r] == "host" || may_share) continue;
    const auto same =
        std::find(devices.begin(), devices.begin() + static_cast<std::ptrdiff_t>(r), devices[r]);
    if (same != devices.begin() + static_cast<std::ptrdiff_t>(r)) {
      fail_usage("ranks {} and {} use the same GPU: start at most as many ranks on a machine as it has GPUs",
                 same - devices.begin(), r);
    }
  }
}

}  // namespace

DeviceChoice choose_device(const RunOptions& options, Communicator& comm) {
  DeviceChoice choice = choose_device(options);
  if (comm.size() == 1) return choice;
  const int on_machine = rank_on_machine(comm);
  if (!choice.device.is_host() && (options.device == "auto" || options.device == "cuda")) {
    const int gpus = cuda_device_count();
    choice = {Device::cuda(on_machine % gpus), fmt::format("rank {} here, of {} GPUs", on_machine, gpus)};
  }
  const std::string name =
      choice.device.is_host() ? "host" : fmt::format("{} {}", this_boot(), bus_address(choice.device));
  check_devices(names_of_all(name, comm), options.ranks.gpu_messages == GpuMessages::host);
  return choice;
}

std::unique_ptr<DeviceTransport> gpu_transport(const RunOptions& options, Device device, Communicator& comm) {
  if (comm.size() == 1 || device.is_host()) return nullptr;
  auto transport =
      options.ranks.gpu_messages == GpuMessages::host ? staged_transport(comm) : nccl_transport(comm, device);
  print_note("messages between GPUs: through {}\n", transport->name());
  return transport;
}

}  // namespace hstu
