#include "hstu/ops/op.h"

#include <string>

namespace hstu::ops {

std::string_view name_of(Operation operation) {
  switch (operation) {
    case Operation::linear:
      return "linear";
    case Operation::grouped_linear:
      return "grouped_linear";
    case Operation::layer_norm:
      return "layer_norm";
    case Operation::swish_layer_norm:
      return "swish_layer_norm";
    case Operation::gate:
      return "gate";
    case Operation::attention:
      return "attention";
    case Operation::gather_sum:
      return "gather_sum";
    case Operation::add:
      return "add";
    case Operation::multiply:
      return "multiply";
    case Operation::concat_columns:
      return "concat_columns";
    case Operation::concat_rows:
      return "concat_rows";
    case Operation::action_rows:
      return "action_rows";
    case Operation::binary_cross_entropy:
      return "binary_cross_entropy";
  }
  return "?";
}

void check_operations(Device device) {
  if (device.is_host()) return;
  std::string missing;
  for (const Operation operation : kOperations) {
    if (has_cuda_kernel(operation)) continue;
    missing += missing.empty() ? "" : ", ";
    missing += name_of(operation);
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
          name_of(operation), to_string(context.device()), to_string(operand.device()));
}

}  // namespace hstu::ops
