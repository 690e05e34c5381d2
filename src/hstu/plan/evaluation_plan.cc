#include "hstu/plan/evaluation_plan.h"

#include <array>
#include <limits>

#include "hstu/experiment/evaluation_batches.h"
#include "hstu/objective/catalogue_blocks.h"
#include "hstu/plan/dry_step.h"
#include "hstu/plan/largest_part.h"

namespace hstu {
namespace {

// Of an example, as measured: its sample, item and label, and its score in the tally and where metrics sort
// it.
constexpr std::int64_t kBytesOfExample = 80;
// Of an event of the dataset in the counts of pairs of items (baseline/next_item.h): the pair, and its count.
constexpr std::int64_t kBytesOfPair = 16;

}  // namespace

std::vector<std::int64_t> evaluated_positions(const RunOptions& options, const Anchors& anchors) {
  if (!options.evaluation.next_window) return held_out_positions(options, anchors);
  std::int64_t largest = 0;
  for (std::int64_t w = 0; w < anchors.training.windows(); ++w)
    if (anchors.training.window(w).size() > anchors.training.window(largest).size()) largest = w;
  return anchors.training.windows() > 0 ? window_positions(options, anchors, largest)
                                        : std::vector<std::int64_t>();
}

EvaluationPlan plan_evaluation(const RunOptions& options, const TaskData& data,
                               const std::vector<std::int64_t>& positions, const DryDevice& device,
                               int ranks) {
  EvaluationPlan plan;
  if (positions.empty()) return plan;
  const SampleBuilder& samples = data.evaluation_samples;
  const Model& model = *data.task.model;
  const LoaderOptions loading = evaluation_loading(options, ranks, 0);
  const AnchorList all(positions, std::array{std::int64_t{0}, std::ssize(positions)});
  const BatchSchedule schedule(all, {.batch_size = scored_batch_size(options, samples, ranks)});
  const LargestPart part =
      largest_part(schedule, samples, loading.division, std::numeric_limits<std::int64_t>::max());
  Batch batch;
  LayoutScratch scratch;
  model.layout().lay_out(samples.build(part.positions), scratch, batch);
  plan.samples = std::ssize(part.positions);
  plan.tokens = batch.tokens;
  plan.activations = outputs_memory(model, batch, device, options.attention);
  const std::int64_t parts = schedule.batches() * part.parts;
  plan.batches = std::min<std::int64_t>(loading.ready + 1, parts) * std::ssize(batch.slab()) * 5 / 4;
  const bool compares = !data.task.objective->catalogues().empty();
  if (compares)
    plan.catalogue =
        kept_bytes((std::ssize(data.catalogue) + ranks - 1) / ranks, model.embedding_dim(), device.is_host());
  if (!device.is_host()) return plan;
  plan.examples = std::ssize(positions) * (1 + samples.most_negatives()) * kBytesOfExample;
  if (data.task.objective->ranks_items())
    plan.baselines = data.dataset.manifest().counts.events * kBytesOfPair;
  return plan;
}

}  // namespace hstu
