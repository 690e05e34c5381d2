// Objective: what is asked of a model's outputs. It has the loss, and the metrics of predictions; a
// MetricSpec of the kind (task/kind.h) describes each of these metrics.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "hstu/base/files.h"
#include "hstu/dataset/dataset.h"
#include "hstu/objective/evaluation_result.h"
#include "hstu/objective/pass.h"
#include "hstu/objective/running_metrics.h"
#include "hstu/objective/tally.h"

namespace hstu {

class ListObjective;
class RankingObjective;
class RetrievalObjective;

// evaluation.ranking_k: the examples of an evaluation as lists.
struct ListQuestion {
  std::span<const std::int64_t> lists;    // (examples) those with equal numbers are a list
  std::span<const std::int64_t> cutoffs;  // none: lists are not measured
  // (V) of a catalogue: ids ascending, and events in training, for metrics by frequency. No counts:
  // unknown.
  std::span<const std::int64_t> items = {}, item_counts = {};
  std::span<const std::int64_t> positions = {};  // (examples) the event of each
  // Of the event at a position: metrics count its examples so often. Unset: each once.
  std::function<float(std::int64_t)> weight = {};
};

// A table whose rows of all items an objective reads, as Pass::catalogues has them.
struct CatalogueUse {
  std::size_t feature = 0;    // of Model::features(): its table
  bool has_gradient = false;  // the loss adds to the gradient of all of its rows
  // Its rows are those of the ids that all items have of this attribute (batching/attribute_of_items.h); "":
  // of the items.
  std::string attribute = {};
};

// What an evaluation may read beside its batches. All of it outlives the evaluation's tally.
struct EvaluationSource {
  std::vector<CatalogueRows> catalogues = {};  // of Objective::catalogues(), without gradients
  const Dataset* dataset = nullptr;            // of the evaluated samples, which batches name by position
  Context compute = host_context();            // where the catalogues' rows are read
};

class Objective {
 public:
  virtual ~Objective() = default;

  // The tables that are read as a whole: none for a model that scores candidates.
  virtual std::vector<CatalogueUse> catalogues() const { return {}; }
  // Whether evaluations rank the target among all items, so that baselines of the next item are beside it.
  virtual bool ranks_items() const { return !catalogues().empty(); }

  // Of the events before a sample's own, so many of the latest are left out of ranks over a catalogue with
  // their items: what baselines must leave out too. `history`: events that the model sees.
  virtual std::int64_t excluded_events(std::int64_t /*history*/) const { return 0; }

  // The sum of the losses of the batch's examples, times their weights if it has any, divided by
  // batch.supervised, the number of examples: (1). The loss of a global batch is the sum over its parts and
  // ranks.
  virtual Variable loss(const Pass& pass, const Variable& outputs) const = 0;

  // The predictions that training needs of a step, and those of an evaluation.
  virtual std::unique_ptr<Tally> step_tally() const = 0;
  virtual std::unique_ptr<Tally> evaluation_tally(const EvaluationSource& source) const = 0;
  // `window_samples`: metrics of training are over so many of the latest examples.
  virtual std::unique_ptr<RunningMetrics> running_metrics(std::int64_t window_samples) const = 0;

  // Fills the metrics of the result. `evaluation`: of evaluation_tally().
  virtual void measure(const Tally& evaluation, const ListQuestion& question,
                       EvaluationResult& result) const = 0;
  // Writes label.npy, score.npy and the like: an element for each example of the tally.
  virtual void write_predictions(const Tally& evaluation, const Path& folder) const = 0;

  // The objective as one that scores single candidates, as requests ask for them. Null: it does not.
  virtual const RankingObjective* ranking() const { return nullptr; }
  // The same as one that finds the items of a catalogue for a vector.
  virtual const RetrievalObjective* retrieval() const { return nullptr; }
  // The same as one that has lists of items.
  virtual const ListObjective* lists() const { return nullptr; }
  virtual ListObjective* lists() { return nullptr; }
};

}  // namespace hstu
