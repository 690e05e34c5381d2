#include "hstu/benchmark/layer_benchmark.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "hstu/base/error.h"
#include "hstu/base/random.h"
#include "hstu/device/gpu_specs.h"
#include "hstu/device/machine.h"
#include "hstu/model/hstu_stack.h"
#include "hstu/training/device_choice.h"

namespace hstu {
namespace {

// The time of each operation on the stream: events before and after it.
class StageClock final : public Trace {
 public:
  explicit StageClock(const Stream& stream) : stream_(stream) {}
  void begin(std::string_view operation) override {
    ranges_.push_back({std::string(operation), mark(), Event()});
  }
  void end() override { ranges_.back().end = mark(); }

  // Milliseconds by operation since the last call.
  std::map<std::string, double> take() {
    std::map<std::string, double> ms;
    for (const Range& range : ranges_) ms[range.name] += range.end.milliseconds_since(range.begin);
    ranges_.clear();
    return ms;
  }

 private:
  struct Range {
    std::string name;
    Event begin, end;
  };
  Event mark() const {
    Event event(stream_.device(), true);
    event.record(stream_);
    return event;
  }
  Stream stream_;
  std::vector<Range> ranges_;
};

// A million normal numbers, again and again.
Tensor activations(const Shape& shape, DType type, std::uint64_t seed, const Context& context) {
  constexpr std::int64_t kDrawn = 1 << 20;
  Tensor x = Tensor::empty(shape, type);
  RandomStream random{seed};
  for (std::int64_t i = 0; i < x.size(); ++i) {
    if (type == DType::bf16) {
      BFloat16* const out = x.mutable_data<BFloat16>();
      out[i] = i < kDrawn ? BFloat16(static_cast<float>(random.normal())) : out[i - kDrawn];
    } else {
      float* const out = x.mutable_data<float>();
      out[i] = i < kDrawn ? static_cast<float>(random.normal()) : out[i - kDrawn];
    }
  }
  return context.device().is_host() ? x : x.copy(context);
}

struct Work {
  double products = 0, attention = 0;  // FLOPs of a forward pass
  double step() const { return 3 * products + 3.5 * attention; }
};
Work work_of(const LayerBenchmarkOptions& o) {
  const double width = static_cast<double>(o.heads * o.head_dim), dim = static_cast<double>(o.dim);
  const double samples = static_cast<double>(o.samples), tokens = static_cast<double>(o.tokens);
  const double layers = static_cast<double>(o.layers);
  return {layers * samples * tokens * 2 * (dim * 4 * width + 3 * width * dim),
          layers * samples * tokens * (tokens + 1) / 2 * 4 * width};
}

class Stack {
 public:
  Stack(const LayerBenchmarkOptions& o, Context context)
      : context_(std::move(context)),
        parameters_(1, DType::f32),
        stack_(parameters_, "layers", {o.layers, {o.dim, o.heads, o.head_dim}, o.dropout}),
        scale_(1 / static_cast<double>(o.tokens)) {
    if (!context_.device().is_host()) parameters_.move_to(context_);
    const DType type = o.precision == Precision::bf16 ? DType::bf16 : DType::f32;
    const Shape shape{o.samples * o.tokens, o.dim};
    x_ = activations(shape, type, 1, context_);
    dy_ = activations(shape, type, 2, context_);
    std::vector<std::int64_t> offsets, names;
    for (std::int64_t b = 0; b <= o.samples; ++b) offsets.push_back(b * o.tokens);
    for (std::int64_t t = 0; t < shape[0]; ++t) names.push_back(t);
    rows_.offsets = Tensor::from({o.samples + 1}, offsets).copy(context_);
    rows_.names = Tensor::from({shape[0]}, names).copy(context_);
  }

  struct Times {
    double forward_ms, backward_ms;
  };
  Times run(std::int64_t step, StageClock* clock = nullptr, Json* stages = nullptr) const {
    Context context = context_;
    context.trace = clock;
    Event begin(context.device(), true), middle(context.device(), true), end(context.device(), true);
    parameters_.clear_gradients(context.stream);
    context.stream.synchronize();
    begin.record(context.stream);
    std::map<std::string, double> forward;
    {
      Tape tape(context);
      const StackRows wanted{{}, {}, rows_.names};
      const Variable y = stack_(tape, Variable(x_), rows_, wanted, scale_, Draws(1, step), 0);
      middle.record(context.stream);
      if (clock != nullptr) forward = clock->take();
      tape.backward(y, dy_);
    }
    end.record(context.stream);
    if (stages != nullptr) {
      for (const auto& [stage, ms] : clock->take())
        stages->push_back({{"stage", stage}, {"forward_ms", forward[stage]}, {"backward_ms", ms}});
    }
    return {middle.milliseconds_since(begin), end.milliseconds_since(middle)};
  }

 private:
  Context context_;
  ParameterSet parameters_;
  HstuStack stack_;
  double scale_;
  Tensor x_, dy_;
  StackRows rows_;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

Json benchmark_layer(const LayerBenchmarkOptions& asked) {
  LayerBenchmarkOptions o = asked;
  if (o.dim == 0) o.dim = o.heads * o.head_dim;
  const Device device = choose_device(o.device).device;
  if (device.is_host() && o.precision == Precision::bf16)
    fail_usage("bf16 needs a GPU: use --precision fp32");
  const Context context = open_device(device);
  const Stack stack(o, context);
  std::vector<double> forward, backward, total;
  for (std::int64_t round = 0; round < o.warmup + o.rounds; ++round) {
    const Stack::Times times = stack.run(round);
    if (round < o.warmup) continue;
    forward.push_back(times.forward_ms);
    backward.push_back(times.backward_ms);
    total.push_back(times.forward_ms + times.backward_ms);
  }
  StageClock clock(context.stream);
  Json stages = Json::array();
  stack.run(0, &clock, &stages);
  std::sort(stages.begin(), stages.end(), [](const Json& a, const Json& b) {
    const auto sum = [](const Json& x) {
      return x["forward_ms"].get<double>() + x["backward_ms"].get<double>();
    };
    return sum(a) > sum(b);
  });

  const double tflops = work_of(o).step() / median(total) * 1e-9;
  Json json{{"device", to_string(device)},
            {"samples", o.samples},
            {"tokens", o.tokens},
            {"layers", o.layers},
            {"heads", o.heads},
            {"head_dim", o.head_dim},
            {"dim", o.dim},
            {"dropout", o.dropout},
            {"precision", word_of(kPrecisions, o.precision)},
            {"forward_ms", median(forward)},
            {"backward_ms", median(backward)},
            {"total_ms", median(total)},
            {"total_ms_min", *std::min_element(total.begin(), total.end())},
            {"total_ms_max", *std::max_element(total.begin(), total.end())},
            {"tflops", tflops},
            {"share_of_peak", nullptr},
            {"peak_gib", static_cast<double>(context.memory->figures().peak) / (1 << 30)},
            {"stages", stages}};
  const Machine machine = this_machine();
  if (!device.is_host() && static_cast<std::size_t>(device.index) < machine.nvidia.gpus.size()) {
    const Gpu& gpu = machine.nvidia.gpus[static_cast<std::size_t>(device.index)];
    json["gpu"] = gpu.name;
    if (const auto specs = gpu_specs(gpu.name, gpu.compute_capability)) {
      json["share_of_peak"] = tflops * 1e12 / (o.precision == Precision::bf16 ? specs->bf16 : specs->fp32);
    }
  }
  return json;
}

}  // namespace hstu
