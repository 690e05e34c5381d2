// Values where a context computes, and the stream of its kernels.
#pragma once

#include <vector>

#include "hstu/device/built_with_cuda.h"
#include "hstu/tensor/context.h"
#include "hstu/tensor/tensor.h"

namespace hstu {

// Calls body with the context's stream as its device's type.
template <typename Body>
void with_stream(const Context& context, const Body& body) {
  if (context.device().is_host()) return body(HostStream{});
  if constexpr (kBuiltWithCuda) body(context.cuda());
}

// (n) on the device of the context.
template <typename T>
Tensor on_device(const std::vector<T>& values, const Context& context) {
  const Tensor host = Tensor::from<T>({std::ssize(values)}, values);
  return context.device().is_host() ? host : host.copy(context);
}

}  // namespace hstu
