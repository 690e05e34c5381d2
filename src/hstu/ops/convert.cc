#include "hstu/ops/convert.h"

#include "hstu/kernels/convert.h"
#include "hstu/ops/op.h"

namespace hstu::ops {
namespace {

// Between f32 and bf16, whichever x is not.
template <typename DeviceStream>
void run(const Tensor& x, Tensor& y, bool accumulate, DeviceStream stream) {
  if (x.dtype() == DType::f32) {
    kernels::convert(
        kernels::Convert<float, BFloat16>{
            x.size(), x.data<float>(), {y.mutable_data<BFloat16>(), accumulate}},
        stream);
  } else {
    kernels::convert(
        kernels::Convert<BFloat16, float>{
            x.size(), x.data<BFloat16>(), {y.mutable_data<float>(), accumulate}},
        stream);
  }
}

thread_local KeptWeights* kept_weights = nullptr;

Tensor converted(const Context& context, const Tensor& x, DType type) {
  const auto known = [](DType t) { return t == DType::f32 || t == DType::bf16; };
  require(known(x.dtype()) && known(type), "convert: expected f32 and bf16, found {} and {}", x.dtype(),
          type);
  check_devices<Operation::convert>(context, x);
  Tensor y = Tensor::empty(x.shape(), type, context);
  dispatch<Operation::convert>(context, DType::f32,
                               [&]<typename T>(auto stream) { run(x, y, false, stream); });
  return y;
}

}  // namespace

Variable convert(Tape& tape, const Variable& x, DType type) {
  if (x.value().dtype() == type) return x;
  const Context& context = tape.context();
  return tape.record(converted(context, x.value(), type), {x}, [=](const Tensor& dy) {
    GradientSlot dx = x.gradient_slot(context);
    dispatch<Operation::convert>(context, DType::f32,
                                 [&]<typename T>(auto stream) { run(dy, dx.tensor, dx.accumulate, stream); });
  });
}

Variable weight(Tape& tape, const Parameter& parameter, DType type) {
  if (parameter.value.dtype() == type) return Variable(parameter);
  if (kept_weights == nullptr || tape.recording())
    return Variable(parameter, converted(tape.context(), parameter.value, type));
  Tensor& copy = kept_weights->copies_[&parameter];
  if (!copy.defined() || copy.dtype() != type) copy = converted(tape.context(), parameter.value, type);
  return Variable(parameter, copy);
}

bool KeptWeights::are_ready() {
  return kept_weights != nullptr && kept_weights->ready_;
}

KeptWeights::Use::Use(KeptWeights& kept) : before_(kept_weights) {
  kept_weights = &kept;
}

KeptWeights::Use::~Use() {
  kept_weights = before_;
}

}  // namespace hstu::ops
