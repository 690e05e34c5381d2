#include "hstu/objective/retrieval_objective.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/base/npy.h"
#include "hstu/batching/catalogue_negatives.h"
#include "hstu/loss/full_softmax.h"
#include "hstu/loss/pooled_softmax.h"
#include "hstu/loss/sampled_softmax.h"
#include "hstu/objective/retrieval_columns.h"
#include "hstu/objective/retrieval_measures.h"
#include "hstu/objective/retrieval_questions.h"
#include "hstu/objective/retrieval_tally.h"
#include "hstu/objective/unmeasured_training.h"
#include "hstu/ops/convert.h"
#include "hstu/ops/gather_sum.h"

namespace hstu {
namespace {

std::int64_t catalogue_size(const Batch& batch) {
  return batch.values<std::int64_t>(retrieval::kCatalogueSize)[0];
}

loss::SampledItems sampled_items(const Pass& pass, const Variable& items) {
  return {.rows = items, .index = pass.batch.tensor(kSampledIndexColumn)};
}

// Rows that are drawn for each position are read one by one: their products are no faster in bfloat16.
Variable as_rows(const Pass& pass, const Variable& vectors) {
  return ops::convert(pass.tape, vectors, pass.rows[0].value().dtype());
}

loss::Pool pool(const Pass& pass, const Variable& items, const RetrievalLoss& loss) {
  const Batch& batch = pass.batch;
  const bool draws = loss.kind == RetrievalLossKind::mixed;
  return {
      .form = draws ? loss::PoolForm::mixed : loss::PoolForm::in_batch,
      .rows = ops::gather_rows(pass.tape, items, batch.tensor(kPoolIndexColumn)),
      .ids = batch.host_tensor(kPoolIdsColumn),
      .occurrences = batch.host_tensor(kPoolOccurrencesColumn),
      .draws = batch.host_tensor(kPoolDrawsColumn),
      .frequency = batch.host_tensor(kPoolFrequencyColumn),
      .rate = draws ? static_cast<double>(loss.negatives) / static_cast<double>(catalogue_size(batch)) : 0};
}

}  // namespace

std::vector<CatalogueUse> RetrievalObjective::catalogues() const {
  std::vector<CatalogueUse> uses = {
      {.feature = 0, .has_gradient = config_.loss.kind == RetrievalLossKind::full}};
  for (const ItemFeature& attribute : config_.attributes)
    uses.push_back({.feature = uses.size(), .attribute = attribute.key});
  return uses;
}

Variable RetrievalObjective::full_softmax(const Pass& pass, const Variable& vectors, const Tensor& targets,
                                          const loss::SoftmaxOptions& options, double divisor) const {
  const CatalogueRows& items = pass.catalogues.front();
  if (config_.attributes.empty())
    return loss::full_softmax(pass.tape, vectors, targets, items, options, divisor);
  return loss::full_softmax(pass.tape, vectors, targets, items,
                            vectors_of_catalogue(pass, config_.attributes), options, divisor);
}

Variable RetrievalObjective::loss(const Pass& pass, const Variable& vectors) const {
  require(!pass.catalogues.empty() && !pass.rows.empty(), "retrieval: expected items and their catalogue");
  const Batch& batch = pass.batch;
  const auto divisor = static_cast<double>(batch.supervised);
  loss::SoftmaxOptions softmax{
      .scale = 1 / config_.loss.temperature, .unit = config_.unit, .longest = config_.unit ? 1.0 : 0.0};
  if (batch.has(retrieval::kTargetWeight)) softmax.weights = batch.tensor(retrieval::kTargetWeight);
  const Tensor targets = batch.tensor(retrieval::kTarget);
  if (config_.loss.kind == RetrievalLossKind::full)
    return full_softmax(pass, vectors, targets, softmax, divisor);
  const Variable items = item_vectors(pass.tape, batch, pass.rows, config_.attributes);
  switch (config_.loss.kind) {
    case RetrievalLossKind::full:
      break;
    case RetrievalLossKind::uniform:
    case RetrievalLossKind::batch_uniform:
      return loss::sampled_softmax(pass.tape, as_rows(pass, vectors), sampled_items(pass, items), softmax,
                                   divisor);
    case RetrievalLossKind::gbce:
      return loss::gbce(
          pass.tape, as_rows(pass, vectors), sampled_items(pass, items),
          {.logits = softmax, .catalogue = catalogue_size(batch), .calibration = config_.loss.calibration},
          divisor);
    case RetrievalLossKind::in_batch:
    case RetrievalLossKind::mixed:
      return loss::pooled_softmax(pass.tape, vectors, targets, pool(pass, items, config_.loss), softmax,
                                  divisor);
  }
  fail("unreachable");
}

std::unique_ptr<Tally> RetrievalObjective::step_tally() const {
  return std::make_unique<CountTally>(retrieval::kTarget);
}

std::int64_t excluded_events(SeenItems seen, std::int64_t history) {
  switch (seen) {
    case SeenItems::history:
      return std::numeric_limits<std::int64_t>::max();
    case SeenItems::window:
      return history;
    case SeenItems::none:
      return 0;
  }
  fail("not a choice of seen items");
}

std::int64_t RetrievalObjective::excluded_events(std::int64_t history) const {
  return hstu::excluded_events(config_.exclude_seen, history);
}

CatalogueScores RetrievalObjective::scores(const EvaluationSource& source) const {
  require(!source.catalogues.empty(), "retrieval: expected the catalogue of items");
  CatalogueScores scores{
      .rows = with_attributes(source, config_.attributes), .unit = config_.unit, .context = source.compute};
  if (!source.compute.device().is_host()) scores.block_rows = kGpuCatalogueBlock;
  return scores;
}

std::unique_ptr<Tally> RetrievalObjective::evaluation_tally(const EvaluationSource& source) const {
  require(source.dataset != nullptr, "retrieval: expected the dataset");
  return std::make_unique<RetrievalTally>(
      scores(source), [dataset = source.dataset, seen = config_.exclude_seen](const Batch& batch) {
        return retrieval_questions(batch, *dataset, seen);
      });
}

std::unique_ptr<RunningMetrics> RetrievalObjective::running_metrics(std::int64_t /*window_samples*/) const {
  return std::make_unique<NoRunningMetrics>();
}

void RetrievalObjective::measure(const Tally& evaluation, const ListQuestion& question,
                                 EvaluationResult& result) const {
  measure_retrieval(ranked_targets(evaluation), config_.exclude_seen, question, result);
}

void write_ranks(const RankedTargets& targets, SeenItems left_out, const Path& folder) {
  write_npy(folder / "target.npy", targets.target);
  std::vector<std::int64_t> rank;
  for (const ListPlace& place : places_in_lists(targets, left_out)) rank.push_back(place.first);
  write_npy(folder / "rank.npy", rank);
}

void RetrievalObjective::write_predictions(const Tally& evaluation, const Path& folder) const {
  write_ranks(ranked_targets(evaluation), config_.exclude_seen, folder);
}

}  // namespace hstu
