#include "hstu/ops/op.h"

namespace hstu::ops {

void refuse(Operation operation, Device device, DType type, bool has_kernels) {
  check(has_kernels, "{}: hstu has kernels for the host alone, none for {}: set device = \"host\"",
        name_of(operation), to_string(device));
  fail("{}: hstu has no kernel for {} on {}: use another type, or the host", name_of(operation),
       to_string(type), to_string(device));
}

void check_device(Operation operation, const Context& context, const Tensor& operand) {
  require(operand.device() == context.device(), "{}: expected tensors on {}, found one on {}",
          name_of(operation), context.device(), operand.device());
}

}  // namespace hstu::ops
