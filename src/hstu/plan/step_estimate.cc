#include "hstu/plan/step_estimate.h"

#include <algorithm>
#include <cmath>

#include "hstu/base/text.h"

namespace hstu {
namespace {

// `bytes` leave a rank, as many for every other one. The link and the network carry them at the same time.
double seconds_to_send(double bytes, int ranks, const Interconnect& net) {
  if (ranks == 1) return 0;
  const double beside = std::min(ranks, net.gpus_per_host) - 1, within = bytes * beside / (ranks - 1);
  return std::max(within / net.link, (bytes - within) / net.network);
}

}  // namespace

StepEstimate estimate_step(const RankPlan& plan, const GpuSpecs& gpu, Precision precision,
                           const Interconnect& net, const StepRates& rates) {
  const auto batches = static_cast<double>(plan.accumulate);
  const double peak = precision == Precision::bf16 ? gpu.bf16 : gpu.fp32;
  StepEstimate step;
  step.ranks = plan.ranks;
  step.samples = batches * static_cast<double>(plan.samples) /
                 static_cast<double>(std::max<std::int64_t>(plan.batches, 1));
  const double value = precision == Precision::bf16 ? 2 : 4,
               memory = rates.share_of_bandwidth * gpu.memory_bandwidth;
  step.model = batches * (plan.work.products / (rates.products * peak) +
                          plan.work.attention / (rates.attention * peak) + value * plan.work.values / memory);
  double rows = 0;
  bool any_move = false, any_copies = false;
  for (const RankPlan::Table& table : plan.tables) {
    rows += table.distinct_ids;
    (table.form == TableRanks::copy ? any_copies : any_move) = true;
  }
  // A row is read and written where it is and where it is used, and so is its gradient; the update reads and
  // writes the row and its state.
  constexpr double kPasses = 12;
  const double row_bytes = sizeof(float) * static_cast<double>(plan.dim);
  step.rows = batches * kPasses * rows * row_bytes / memory;
  const RankPlan::Traffic sent = plan.sent();
  const auto on_the_way = [&](double bytes) {
    return seconds_to_send(bytes, plan.ranks, net) / rates.share_of_bandwidth;
  };
  step.table_bytes = batches * on_the_way(sent.ids + sent.rows + sent.row_gradients);
  step.dense_bytes = on_the_way(plan.dense);
  const double of_layers = batches * plan.parts * rates.layer_exchange_seconds;
  step.context = batches * on_the_way(plan.context) + of_layers * plan.context_exchanges;
  if (plan.ranks == 1) return step;
  // Groups are of one host as far as it has GPUs.
  step.heads = batches * seconds_to_send(plan.heads, plan.tensor, net) / rates.share_of_bandwidth +
               of_layers * plan.head_exchanges * std::log2(plan.tensor);
  // Of each part: ids, rows and gradients; the gradients of copies. Of each step: the slices of a bucket of
  // dense gradients, and their sums.
  const double exchanges = batches * plan.parts * ((any_move ? 3 : 0) + (any_copies ? 1 : 0));
  const double dense = plan.dense * plan.ranks / (2.0 * (plan.ranks - 1));
  const double buckets = std::max(1.0, dense / rates.bucket_bytes);
  step.messages = rates.beside_others * step.model +
                  (exchanges + 2 * buckets) * rates.exchange_seconds * std::log2(plan.ranks);
  return step;
}

std::vector<StepEstimate> estimate_scaling(const RunOptions& options, const GpuSpecs& gpu,
                                           const Interconnect& net, int ranks) {
  const TaskData data(options);
  const std::int64_t samples = kEstimatedBatches * options.training.batch_size;
  std::vector<StepEstimate> steps;
  for (int n = 1; n < 2 * ranks; n *= 2) {
    const int of = std::min(n, ranks);
    RunOptions with = options;
    if (of % options.ranks.tensor != 0) with.ranks.tensor = 1;
    steps.push_back(estimate_step(plan_ranks(with, data, of, samples), gpu, options.precision, net));
  }
  return steps;
}

int stops_scaling(const std::vector<StepEstimate>& steps) {
  for (std::size_t i = 0; i + 1 < steps.size(); ++i) {
    if (steps[i + 1].ranks == 2 * steps[i].ranks &&
        steps[i + 1].samples_per_s() < 1.5 * steps[i].samples_per_s())
      return steps[i].ranks;
  }
  return 0;
}

std::string to_text(const std::vector<StepEstimate>& steps) {
  std::vector<std::vector<std::string>> rows{{"ranks", "ms a step", "model", "rows", "ids, rows, gradients",
                                              "dense gradients", "heads", "messages", "samples/s"}};
  const auto ms = [](double seconds) { return fmt::format("{:.1f}", 1000 * seconds); };
  for (const StepEstimate& step : steps) {
    rows.push_back({with_separators(step.ranks), ms(step.seconds()), ms(step.model), ms(step.rows),
                    ms(step.table_bytes), ms(step.dense_bytes), ms(step.heads), ms(step.messages),
                    with_separators(std::llround(step.samples_per_s()))});
  }
  const bool any_long = std::ranges::any_of(steps, [](const StepEstimate& s) { return s.context > 0; });
  for (std::size_t i = 0; any_long && i < rows.size(); ++i)
    rows[i].insert(rows[i].end() - 2, i == 0 ? "long samples" : ms(steps[i - 1].context));
  std::string text = table(rows);
  const int most = stops_scaling(steps);
  text += most > 0
              ? fmt::format(
                    "it stops scaling at {} ranks: twice as many give less than 1.5 times the samples/s\n",
                    with_separators(most))
              : fmt::format("it scales to {} ranks\n", with_separators(steps.back().ranks));
  return text;
}

Json to_json(const std::vector<StepEstimate>& steps) {
  Json lines = Json::array();
  for (const StepEstimate& step : steps) {
    lines.push_back({{"ranks", step.ranks},
                     {"seconds", step.seconds()},
                     {"model_s", step.model},
                     {"rows_s", step.rows},
                     {"tables_s", step.table_bytes},
                     {"dense_s", step.dense_bytes},
                     {"heads_s", step.heads},
                     {"long_samples_s", step.context},
                     {"messages_s", step.messages},
                     {"samples_per_s", step.samples_per_s()}});
  }
  return {{"steps", lines}, {"stops_scaling_at", stops_scaling(steps)}};
}

}  // namespace hstu
