// Shared code of all ops. Only dispatch chooses a kernel, by device and element type.
#pragma once

#include <string_view>
#include <type_traits>

#include "hstu/base/choice.h"
#include "hstu/device/built_with_cuda.h"
#include "hstu/device/dry_memory_pool.h"
#include "hstu/device/stream.h"
#include "hstu/kernels/dry.h"
#include "hstu/kernels/elementwise.h"
#include "hstu/kernels/gradient.h"
#include "hstu/tensor/tape.h"

namespace hstu::ops {

enum class Operation {
  linear,
  grouped_linear,
  mlp,
  layer_norm,
  swish_layer_norm,
  gate,
  attention,
  gather_sum,
  add,
  multiply,
  concat_columns,
  concat_rows,
  action_rows,
  binary_cross_entropy,
  convert,
  activation,
  dropout,
  l2_normalise,
  multi_task_cross_entropy,
  multi_class_cross_entropy,
  all_gather_rows,
  reduce_scatter_rows,
  exchange_rows,
  swap_heads,
  linear_of_gathered,
  scattered_linear,
  gather_keys,
  catalogue_softmax,
  sampled_logits,
  sampled_loss,
  rms_norm,
  rotary,
};
inline constexpr Choice<Operation> kOperations[] = {
    {"linear", Operation::linear},
    {"grouped_linear", Operation::grouped_linear},
    {"mlp", Operation::mlp},
    {"layer_norm", Operation::layer_norm},
    {"swish_layer_norm", Operation::swish_layer_norm},
    {"gate", Operation::gate},
    {"attention", Operation::attention},
    {"gather_sum", Operation::gather_sum},
    {"add", Operation::add},
    {"multiply", Operation::multiply},
    {"concat_columns", Operation::concat_columns},
    {"concat_rows", Operation::concat_rows},
    {"action_rows", Operation::action_rows},
    {"binary_cross_entropy", Operation::binary_cross_entropy},
    {"convert", Operation::convert},
    {"activation", Operation::activation},
    {"dropout", Operation::dropout},
    {"l2_normalise", Operation::l2_normalise},
    {"multi_task_cross_entropy", Operation::multi_task_cross_entropy},
    {"multi_class_cross_entropy", Operation::multi_class_cross_entropy},
    {"all_gather_rows", Operation::all_gather_rows},
    {"reduce_scatter_rows", Operation::reduce_scatter_rows},
    {"exchange_rows", Operation::exchange_rows},
    {"swap_heads", Operation::swap_heads},
    {"linear_of_gathered", Operation::linear_of_gathered},
    {"scattered_linear", Operation::scattered_linear},
    {"gather_keys", Operation::gather_keys},
    {"catalogue_softmax", Operation::catalogue_softmax},
    {"sampled_logits", Operation::sampled_logits},
    {"sampled_loss", Operation::sampled_loss},
    {"rms_norm", Operation::rms_norm},
    {"rotary", Operation::rotary},
};
constexpr std::string_view name_of(Operation operation) {
  for (const auto& [name, value] : kOperations) {
    if (value == operation) return name;
  }
  return "?";
}

// Whether an operation has kernels for GPUs (kernels/cuda/x.cu), for both passes. Every operation has those
// for the host, which are written first: until the others exist, the operation's header says
//   template <> inline constexpr bool kHasGpuKernels<Operation::x> = false;
template <Operation operation>
inline constexpr bool kHasGpuKernels = true;

// Throws Error. `has_kernels`: for the device, of other types.
[[noreturn]] void refuse(Operation operation, Device device, DType type, bool has_kernels);
void check_device(Operation operation, const Context& context, const Tensor& operand);

// Calls body.template operator()<T>(stream) with the element type of `type` and the stream as its device's
// type, which select the overload of the kernel. With the memory of a dry run it is a DryStream, and nothing
// is called for an operation that has kernels for the host alone, which take no memory of a pool.
template <Operation operation, typename Body>
void dispatch(const Context& context, DType type, const Body& body) {
  const TraceRange range(context, name_of(operation));
  constexpr bool has_gpu_kernels = kBuiltWithCuda && kHasGpuKernels<operation>;
  if (DryMemoryPool* const dry = context.memory->dry()) {
    if constexpr (kHasGpuKernels<operation>) {
      if (type == DType::f32) return body.template operator()<float>(dry->kernels());
      if (type == DType::bf16) return body.template operator()<BFloat16>(dry->kernels());
    } else {
      return;
    }
  } else if (context.device().is_host()) {
    if (type == DType::f32) return body.template operator()<float>(HostStream());
    if (type == DType::f64) return body.template operator()<double>(HostStream());
  } else if constexpr (has_gpu_kernels) {
    if (type == DType::f32) return body.template operator()<float>(context.cuda());
    if (type == DType::bf16) return body.template operator()<BFloat16>(context.cuda());
  }
  refuse(operation, context.device(), type, context.device().is_host() || has_gpu_kernels);
}

// Inside dispatch(), for traces: see Trace::works_on.
inline void tell_work(const Context& context, std::initializer_list<std::int64_t> sizes, std::int64_t flops) {
  if (context.trace != nullptr) context.trace->works_on(sizes, flops);
}

// Throws unless all operands (variables and tensors; undefined ones are ignored) are on the context's
// device.
template <Operation operation, typename... Operands>
void check_devices(const Context& context, const Operands&... operands) {
  const auto check_one = [&](const auto& operand) {
    if (!operand.defined()) return;
    if constexpr (std::is_same_v<std::decay_t<decltype(operand)>, Variable>)
      check_device(operation, context, operand.value());
    else
      check_device(operation, context, operand);
  };
  (check_one(operands), ...);
}

template <typename T>
const T* data_or_null(const Variable& variable) {
  return variable.defined() ? variable.value().data<T>() : nullptr;
}

// The destination of a backward kernel for the gradient of `variable`; empty if none is needed. Call it in
// the order in which the kernel writes: the first call for a variable overwrites.
template <typename T>
kernels::Gradient<T> gradient_of(const Variable& variable, const Context& context) {
  if (!variable.defined() || !variable.needs_gradient()) return {};
  GradientSlot slot = variable.gradient_slot(context);
  return {slot.tensor.mutable_data<T>(), slot.accumulate, variable.parameter() != nullptr};
}

// dy becomes the gradient of `variable`, or is added to it. Nothing may read dy after this.
template <typename T, typename DeviceStream>
void pass_on(const Tensor& dy, const Variable& variable, const Context& context, DeviceStream stream) {
  if (variable.needs_gradient() && variable.take_gradient(dy)) return;
  kernels::pass_gradient(
      kernels::PassGradient<T>{
          .size = dy.size(), .dy = dy.data<T>(), .dx = gradient_of<T>(variable, context)},
      stream);
}

}  // namespace hstu::ops
