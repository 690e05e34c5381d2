#include "hstu/training/evaluation.h"

#include <array>

#include "hstu/base/clock.h"
#include "hstu/base/faults.h"
#include "hstu/base/npy.h"
#include "hstu/baseline/baseline_file.h"
#include "hstu/batching/loader.h"
#include "hstu/training/predictions.h"

namespace hstu {
namespace {

// The held-out anchors in the dataset's order, at most evaluation.max_samples of them (0: all).
std::vector<std::int64_t> evaluation_positions(const Experiment& experiment) {
  const AnchorList& anchors = experiment.anchors().evaluation;
  const std::int64_t limit = experiment.options().evaluation.max_samples;
  return anchors.first(limit > 0 ? limit : anchors.size());
}

}  // namespace

Evaluator::Evaluator(Experiment& experiment, Path baseline)
    : experiment_(experiment),
      baseline_file_(std::move(baseline)),
      positions_(evaluation_positions(experiment)) {}

bool Evaluator::score(Progress& progress, const std::atomic<bool>* stop, Communicator& comm) {
  const RunOptions& options = experiment_.options();
  ScheduleOptions order;
  order.batch_size =
      options.evaluation.batch_size > 0 ? options.evaluation.batch_size : options.training.batch_size;
  const AnchorList all(positions_, std::array{std::int64_t{0}, static_cast<std::int64_t>(positions_.size())});
  samples_.clear();
  Learner& learner = experiment_.learner();
  bad_ids_ = BadIds(options.on_bad_id, learner.model->features());
  Loader loader(experiment_.samples(), learner.model->layout(), BatchSchedule(all, order),
                {.workers = static_cast<int>(options.data.workers),
                 .ready = 4,
                 .part_tokens = options.training.micro_batch_tokens,
                 .rank = comm.rank(),
                 .ranks = comm.size()});
  while (LoadedBatch* const loaded = loader.next()) {
    Batch& batch = loaded->batch;
    batch.copy_to(learner.compute);
    bad_ids_.add(batch.bad_ids);
    const RowSelection selection = learner.tables.select(feature_ids(*learner.model, batch), RowAccess::read);
    const std::vector<Variable> rows = leaves_of(learner.tables.gather(selection), learner.compute);
    Tape tape(learner.compute, false);
    const Variable logits = learner.model->forward(tape, batch, rows, Draws());
    add_predictions(scores_of(logits, batch), tape.context().stream, samples_);
    progress.advance_to(samples_.size());
    fault_point("evaluation.batch");
    if (stop != nullptr && *stop) return false;
  }
  samples_ = gather(samples_, comm);
  return true;
}

std::optional<EvaluationResult> Evaluator::run(const std::atomic<bool>* stop, Communicator& comm) {
  const Clock::time_point start = Clock::now();
  fault_point("evaluation.begin");
  if (!baseline_) {
    baseline_ = baseline_metrics(experiment_.dataset(), experiment_.options().data.options,
                                 experiment_.anchors().holdout, positions_, baseline_file_);
  }
  Progress progress("evaluate", static_cast<std::int64_t>(positions_.size()), "samples");
  if (!score(progress, stop, comm)) return std::nullopt;
  totals_ = LifetimeMetrics();
  for (std::size_t i = 0; i < samples_.probabilities().size(); ++i) {
    totals_.add(samples_.probabilities()[i], samples_.labels()[i] != 0);
  }
  EvaluationResult result{samples_.metrics(), *baseline_, totals_.auc.value(), seconds_since(start), {}};
  for (const BadIds::Feature& feature : bad_ids_.features())
    if (feature.count > 0) result.bad_ids[feature.name] = feature.count;
  progress.finish(result.model.auc ? fmt::format("AUC {:.4f}", *result.model.auc)
                                   : "AUC undefined: one class only");
  fault_point("evaluation.end");
  return result;
}

void Evaluator::write_predictions(const Path& folder) const {
  StagedFolder staged(folder);
  std::vector<std::int64_t> user, item, time;
  for (const std::int64_t position : positions_) {
    user.push_back(
        experiment_.dataset().user_ids()[static_cast<std::size_t>(experiment_.dataset().user_at(position))]);
    item.push_back(experiment_.dataset().item()[position]);
    time.push_back(experiment_.dataset().time()[position]);
  }
  write_npy(staged.path() / "user.npy", user);
  write_npy(staged.path() / "item.npy", item);
  write_npy(staged.path() / "time.npy", time);
  write_npy(staged.path() / "position.npy", positions_);
  write_npy(staged.path() / "label.npy", samples_.labels());
  write_npy(staged.path() / "score.npy", samples_.probabilities());
  staged.commit();
}

}  // namespace hstu
