// Products: matrix products that keep a device busy, in place of a model.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "hstu/base/clock.h"
#include "hstu/ops/linear.h"
#include "hstu/tensor/tape.h"

namespace hstu {

class Products {
 public:
  // They take about `ms` each time.
  Products(double ms, const Context& context) : context_(context) {
    const bool on_gpu = !context.device().is_host();
    const std::int64_t width = on_gpu ? 4096 : 64;
    factor_ = Variable(Tensor::zeros({width, width}, on_gpu ? DType::bf16 : DType::f32, context));
    run();
    context.stream.synchronize();
    times_ = 20;
    const Clock::time_point begin = Clock::now();
    run();
    context.stream.synchronize();
    times_ = std::max<std::int64_t>(1, std::llround(ms * 20 / (1000 * seconds_since(begin))));
  }
  void run() const {
    Tape tape(context_, false);
    for (std::int64_t i = 0; i < times_; ++i) ops::linear(tape, factor_, factor_, Variable());
  }

 private:
  Context context_;
  Variable factor_;
  std::int64_t times_ = 1;
};

}  // namespace hstu
