#include "hstu/benchmark/step_benchmark.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "hstu/base/clock.h"
#include "hstu/base/random.h"
#include "hstu/benchmark/layer_needs.h"
#include "hstu/device/machine.h"
#include "hstu/experiment/device_choice.h"
#include "hstu/kinds/dlrmv4/dlrmv4.h"
#include "hstu/kinds/dlrmv4/dlrmv4_objective.h"
#include "hstu/step/step.h"
#include "hstu/step/step_sections.h"

namespace hstu {
namespace {

constexpr std::int64_t kRows = 100'000, kBatch = 32, kShortest = 64, kLongest = 256;
constexpr std::size_t kAttributes = 2, kContext = 8, kBatches = 4;

Samples random_samples(RandomStream& random) {
  const auto id = [&] { return static_cast<std::int64_t>(random.below(kRows)); };
  Samples samples;
  samples.count = kBatch;
  samples.history_offsets = {0};
  samples.context.resize(kContext);
  std::vector<std::int64_t> items;
  for (std::int64_t b = 0; b < kBatch; ++b) {
    const std::int64_t length = kShortest + static_cast<std::int64_t>(random.below(kLongest - kShortest + 1));
    std::int64_t time = 1'000'000;
    for (std::int64_t n = 0; n < length; ++n) {
      items.push_back(id());
      samples.history_action.push_back(static_cast<std::uint8_t>(1u << random.below(3)));
      samples.history_time.push_back(time += static_cast<std::int64_t>(random.below(3600)));
    }
    samples.history_offsets.push_back(samples.history_offsets.back() + length);
    samples.candidate_time.push_back(time + 60);
    samples.label.push_back(random.uniform() < 0.6 ? 1.0f : 0.0f);
    samples.user.push_back(b);
    samples.position.push_back(b);
    for (auto& feature : samples.context) feature.push_back(id());
  }
  for (std::int64_t b = 0; b < kBatch; ++b) items.push_back(id());  // the candidates
  std::vector<std::int32_t> index(items.size());
  samples.items.assign(items.begin(), items.end());
  std::sort(samples.items.begin(), samples.items.end());
  samples.items.erase(std::unique(samples.items.begin(), samples.items.end()), samples.items.end());
  for (std::size_t i = 0; i < items.size(); ++i) {
    index[i] = static_cast<std::int32_t>(
        std::lower_bound(samples.items.begin(), samples.items.end(), items[i]) - samples.items.begin());
  }
  samples.history_item.assign(index.begin(), index.end() - kBatch);
  samples.candidate_item.assign(index.end() - kBatch, index.end());
  samples.attributes.resize(kAttributes);
  for (auto& attribute : samples.attributes) {
    for (std::size_t i = 0; i < samples.items.size(); ++i) attribute.push_back(id());
  }
  return samples;
}

SampleFeatures features() {
  SampleFeatures features({"item", kRows}, {{"artist", kRows}, {"album", kRows}});
  for (std::size_t c = 0; c < kContext; ++c)
    features.context.push_back({fmt::format("context_{}", c), kRows});
  return features;
}

// Of one step on this batch, of which every id of a feature occurs once in its list.
NeedsByStage needs_of(const Learner& learner, const HstuStackConfig& stack, const Batch& batch) {
  NeedsByStage needs;
  std::vector<SampleQueries> samples;
  const auto offsets = batch.values<std::int64_t>(dlrmv4::kOffsets);
  for (std::size_t b = 0; b + 1 < offsets.size(); ++b)
    samples.push_back({causal_mask(offsets[b + 1] - offsets[b]), 1});
  for (std::int64_t i = 0; i < stack.layers; ++i) {
    const bool is_last = i + 1 == stack.layers;
    LayerFlops flops;
    for (const auto& [mask, wanted] : samples)
      flops += layer_flops(stack.layer, mask, is_last ? wanted : mask.n);
    add_layer_needs(stack.layer, batch.tokens, is_last ? batch.samples : batch.tokens, sizeof(float), flops,
                    needs);
  }
  std::int64_t values = 0;
  const std::vector<FeatureSpec> features = learner.model->features();
  for (std::size_t f = 0; f < features.size(); ++f)
    values += batch.host_tensor(ids_column(features[f].name)).size() * learner.model->row_width(f);
  // Lookup: a row is read and written. Update: its gradient and the row are read, the row is written.
  needs[std::string(kEmbeddingStage)].least_bytes = static_cast<double>(5 * values) * sizeof(float);
  needs[std::string(kOptimizerStage)].least_bytes = static_cast<double>(learner.dense_optimizer.step_bytes());
  return needs;
}

}  // namespace

Json benchmark_step(const StepBenchmarkOptions& options) {
  RunOptions run;
  run.seed = options.seed;
  Dlrmv4Config config;
  config.action_bits = {1, 2, 4};
  config.attributes = kAttributes;
  config.context = kContext;
  Learner learner(run, std::make_unique<Dlrmv4>(config, features(), run.seed),
                  std::make_unique<Dlrmv4Objective>(), open_device(choose_device(options.device).device));
  RandomStream random{derive_key(options.seed, "benchmark batches")};
  std::vector<Batch> batches(kBatches);
  LayoutScratch scratch;
  for (Batch& batch : batches) {
    learner.model->layout().lay_out(random_samples(random), scratch, batch);
    batch.supervised = kBatch;
    batch.copy_to(learner.compute);
  }

  const HstuStackConfig stack{
      config.layers, {config.dim, config.heads, config.head_dim}, config.layer_dropout};
  StageTimer timer(learner.compute.stream, 2, learner.compute.trace);
  std::int64_t step = 0;
  const auto train = [&](Trace* trace) {
    Context compute = learner.compute;
    if (trace != nullptr) compute.trace = trace;
    const Batch* part = &batches[static_cast<std::size_t>(step) % kBatches];
    const StepContext context{.step = step, .draws = Draws(run.seed, step), .compute = compute};
    ++step;
    PartsOf parts([&] { return std::exchange(part, nullptr); });
    return begin_step(learner, parts, context).finish();
  };
  std::vector<double> ms;
  std::int64_t tokens = 0;
  StackFlops flops;
  while (step < options.warmup + options.steps) {
    const Clock::time_point start = Clock::now();
    const StepResult result = train(nullptr);
    const double elapsed_ms = 1000 * seconds_since(start);
    if (step <= options.warmup) continue;
    ms.push_back(elapsed_ms);
    tokens += result.tokens;
    flops += result.flops;
  }
  // Every batch once by stage, after a step that makes the timer's events.
  std::vector<StageSums> sums;
  NeedsByStage needs;
  train(&timer);
  timer.take();
  for (std::size_t i = 0; i < kBatches; ++i) {
    const Batch& batch = batches[static_cast<std::size_t>(step) % kBatches];
    for (const auto& [stage, need] : needs_of(learner, stack, batch)) {
      needs[stage].flops += need.flops / kBatches;
      needs[stage].least_bytes += need.least_bytes / kBatches;
    }
    train(&timer);
    add_stages(timer.take(), sums);
  }
  const Device device = learner.compute.device();
  const auto peak = peak_flops(device, run.precision);
  std::sort(ms.begin(), ms.end());
  const auto quantile = [&](double q) {
    return ms[static_cast<std::size_t>(q * static_cast<double>(ms.size() - 1))];
  };
  const double mean_tokens = static_cast<double>(tokens) / static_cast<double>(ms.size());
  const auto tflops = [&](const LayerFlops& all) {
    return static_cast<double>(all.step()) / static_cast<double>(ms.size()) / quantile(0.5) * 1e-9;
  };
  return {{"program", "hstu"},
          {"median_ms", quantile(0.5)},
          {"p10_ms", quantile(0.1)},
          {"p90_ms", quantile(0.9)},
          {"samples_per_s", 1000 * static_cast<double>(kBatch) / quantile(0.5)},
          {"tokens_per_s", 1000 * mean_tokens / quantile(0.5)},
          {"tflops", tflops(flops.model)},
          {"computed_tflops", tflops(flops.computed)},
          {"peak_rss_mib", peak_rss_mib()},
          {"stages", stages_json(sums, kBatches, needs, peak, specs_of(this_machine(), device))}};
}

}  // namespace hstu
