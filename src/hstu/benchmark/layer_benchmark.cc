#include "hstu/benchmark/layer_benchmark.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "hstu/base/error.h"
#include "hstu/base/median.h"
#include "hstu/base/random.h"
#include "hstu/benchmark/layer_needs.h"
#include "hstu/benchmark/stage_table.h"
#include "hstu/device/gpu_condition.h"
#include "hstu/device/machine.h"
#include "hstu/experiment/device_choice.h"
#include "hstu/model/hstu_stack.h"
#include "hstu/step/step_sections.h"

namespace hstu {
namespace {

enum class Regime { burst, sustained };

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

HstuStackConfig stack_config(const LayerBenchmarkOptions& o) {
  return {o.layers,
          {.dim = o.dim, .heads = o.heads, .head_dim = o.head_dim, .gate = o.gate, .recompute = o.recompute},
          o.dropout};
}

LayerFlops flops_of(const LayerBenchmarkOptions& o, const HstuStackConfig& stack) {
  const auto tokens = static_cast<std::int32_t>(o.tokens);
  const std::vector<SampleQueries> samples(static_cast<std::size_t>(o.samples),
                                           {causal_mask(o.tokens), tokens});
  return stack_flops(stack, samples).model;
}

NeedsByStage needs_of(const LayerBenchmarkOptions& o) {
  NeedsByStage needs;
  const std::int64_t tokens = o.samples * o.tokens, value_bytes = o.precision == Precision::bf16 ? 2 : 4;
  HstuStackConfig layer = stack_config(o);
  layer.layers = 1;
  for (std::int64_t i = 0; i < o.layers; ++i)
    add_layer_needs(layer.layer, tokens, tokens, value_bytes, flops_of(o, layer), needs);
  return needs;
}

class Stack {
 public:
  Stack(const LayerBenchmarkOptions& o, Context context)
      : context_(std::move(context)),
        parameters_(1, DType::f32),
        stack_(parameters_, "layers", stack_config(o)),
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
    double total_ms() const { return forward_ms + backward_ms; }
  };
  Times run(std::int64_t step, Regime regime, StageTimer* timer = nullptr) const {
    Context context = context_;
    if (timer != nullptr) context.trace = timer;
    Event begin(context.device(), true), middle(context.device(), true), end(context.device(), true);
    parameters_.clear_gradients(context.stream);
    context.stream.synchronize();
    // A GPU at its power limit lowers its clock.
    if (regime == Regime::burst) std::this_thread::sleep_for(std::chrono::milliseconds(250));
    begin.record(context.stream);
    {
      Tape tape(context);
      const StackRows wanted{{}, {}, rows_.names};
      Variable y;
      {
        const TraceRange section(context, kForwardSection);
        y = stack_(tape, Variable(x_), rows_, wanted, scale_, Draws(1, step), 0);
      }
      middle.record(context.stream);
      const TraceRange section(context, kBackwardSection);
      tape.backward(y, dy_);
    }
    end.record(context.stream);
    end.synchronize();
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

// Times of o.rounds rounds, as fields.
Json time_rounds(const Stack& stack, const LayerBenchmarkOptions& o, double flops, Regime regime) {
  double warm_up_ms = regime == Regime::burst ? 0 : 1000;
  for (int round = 0; round < 2 || warm_up_ms > 0; ++round)
    warm_up_ms -= stack.run(round, Regime::sustained).total_ms();
  std::vector<double> forward, backward, total;
  for (std::int64_t round = 0; round < o.rounds; ++round) {
    const Stack::Times times = stack.run(round, regime);
    forward.push_back(times.forward_ms);
    backward.push_back(times.backward_ms);
    total.push_back(times.total_ms());
  }
  return {{"forward_ms", median(forward)},
          {"backward_ms", median(backward)},
          {"total_ms", median(total)},
          {"total_ms_min", *std::min_element(total.begin(), total.end())},
          {"total_ms_max", *std::max_element(total.begin(), total.end())},
          {"tflops", flops / median(total) * 1e-9}};
}

}  // namespace

Json benchmark_layer(const LayerBenchmarkOptions& asked) {
  LayerBenchmarkOptions o = asked;
  if (o.dim == 0) o.dim = o.heads * o.head_dim;
  const Device device = choose_device(o.device).device;
  if (device.is_host() && o.precision == Precision::bf16)
    fail_usage("bf16 needs a GPU: use --precision fp32");
  if (device.is_host() && o.attention != AttentionChoice::automatic)
    fail_usage("--attention {} needs a GPU: use auto", word_of(kAttentionChoices, o.attention));
  Context context = open_device(device);
  context.deterministic = o.deterministic;
  context.attention = o.attention;
  const Stack stack(o, context);
  const auto flops = static_cast<double>(flops_of(o, stack_config(o)).step());
  const Json burst = time_rounds(stack, o, flops, Regime::burst),
             sustained = time_rounds(stack, o, flops, Regime::sustained);
  StageTimer timer(context.stream, 2, context.trace);
  std::vector<StageSums> sums;
  for (std::int64_t round = 0; round < 1 + o.rounds; ++round) {
    stack.run(round, Regime::sustained, &timer);
    const std::vector<StageTime> ranges = timer.take();
    if (round > 0) add_stages(ranges, sums);  // the first makes the timer's events
  }
  const auto specs = specs_of(this_machine(), device);
  const auto peak = peak_flops(device, o.precision);
  Json json{{"device", to_string(device)},
            {"samples", o.samples},
            {"tokens", o.tokens},
            {"layers", o.layers},
            {"heads", o.heads},
            {"head_dim", o.head_dim},
            {"dim", o.dim},
            {"gate", word_of(kernels::kGateForms, o.gate)},
            {"recompute_norm", o.recompute.norm},
            {"recompute_silu", o.recompute.silu},
            {"recompute_gate", o.recompute.gate},
            {"recompute_layer", o.recompute.layer},
            {"dropout", o.dropout},
            {"deterministic", o.deterministic},
            {"attention", word_of(kAttentionChoices, o.attention)},
            {"precision", word_of(kPrecisions, o.precision)},
            {"burst", burst},
            {"sustained", sustained},
            {"share_of_peak", peak ? Json(sustained.at("tflops").get<double>() * 1e12 / *peak) : Json()},
            {"peak_gib", static_cast<double>(context.memory->figures().peak) / (1 << 30)},
            {"stages", stages_json(sums, o.rounds, needs_of(o), peak, specs)}};
  const std::vector<Gpu> gpus = this_machine().nvidia.gpus;
  const auto index = static_cast<std::size_t>(device.index);
  if (!device.is_host() && index < gpus.size()) json["gpu"] = gpus[index].name;
  if (!device.is_host())
    for (const GpuCondition& condition : gpu_conditions()) json["gpus_now"].push_back(to_json(condition));
  return json;
}

}  // namespace hstu
