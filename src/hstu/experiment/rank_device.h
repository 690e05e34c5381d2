// Which GPU a rank uses.
#pragma once

#include <memory>

#include "hstu/comm/communicator.h"
#include "hstu/comm/device_transport.h"
#include "hstu/experiment/device_choice.h"
#include "hstu/options/options.h"

namespace hstu {

// choose_device() for one rank of several; all call it together. With "auto" and "cuda" the ranks of a
// machine take its GPUs in the order of ranks. Throws UsageError naming the ranks if some compute on GPUs and
// others do not, or two on the same GPU while messages go through NCCL.
DeviceChoice choose_device(const RunOptions& options, Communicator& comm);

// Messages between the GPUs of the ranks, as ranks.gpu_messages says; null: one rank, or ranks on processors.
std::unique_ptr<DeviceTransport> gpu_transport(const RunOptions& options, Device device, Communicator& comm);

}  // namespace hstu
