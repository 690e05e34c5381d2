#include "hstu/ops/op.h"

#include <string>

namespace hstu::ops {

void check_operations(Device device) {
  if (device.is_host()) return;
  std::string missing;
  for (const auto& [name, operation] : kOperations) {
    if (has_cuda_kernel(operation)) continue;
    missing += missing.empty() ? "" : ", ";
    missing += name;
  }
  check(missing.empty(), "hstu has no GPU kernels yet for {}: use the host in place of {}", missing,
        to_string(device));
}

void refuse(Operation operation, Device device, DType type) {
  fail("{}: hstu has no kernel for {} on {}: use another type, or the host", name_of(operation),
       to_string(type), to_string(device));
}

void check_device(Operation operation, const Context& context, const Tensor& operand) {
  require(operand.device() == context.device(), "{}: expected tensors on {}, found one on {}",
          name_of(operation), context.device(), operand.device());
}

}  // namespace hstu::ops
