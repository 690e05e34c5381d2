#include "hstu/training/evaluation.h"

#include <array>
#include <utility>

#include "hstu/base/clock.h"
#include "hstu/base/faults.h"
#include "hstu/base/npy.h"
#include "hstu/baseline/baseline_file.h"
#include "hstu/batching/loader.h"
#include "hstu/experiment/over_ranks.h"
#include "hstu/experiment/routes.h"
#include "hstu/step/predictions.h"
#include "hstu/training/ranked_lists.h"

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
      positions_(evaluation_positions(experiment)) {
  const EvaluationSection& options = experiment.options().evaluation;
  if (!options.ranking_k.empty())
    lists_ = ranked_lists(experiment.dataset(), positions_, options.ranking_list);
}

bool Evaluator::score(Progress& progress, const std::atomic<bool>* stop, Communicator& comm) {
  const RunOptions& options = experiment_.options();
  ScheduleOptions order;
  order.batch_size =
      options.evaluation.batch_size > 0 ? options.evaluation.batch_size : options.training.batch_size;
  const AnchorList all(positions_, std::array{std::int64_t{0}, static_cast<std::int64_t>(positions_.size())});
  Learner& learner = experiment_.learner();
  samples_.assign(learner.model->tasks().size(), RankingSamples());
  bad_ids_ = BadIds(options.on_bad_id, learner.model->features());
  LoaderOptions loading;
  loading.workers = static_cast<int>(options.data.workers);
  loading.division.part_tokens = options.training.micro_batch_tokens;
  loading.division.ranks = comm.size();
  loading.rank = comm.rank();
  loading.finish = with_routes(learner);
  loading.readers = learner.streams();
  Loader loader(experiment_.evaluation_samples(), learner.model->layout(), BatchSchedule(all, order),
                loading);
  // Of one global batch, whose samples then have the order of one rank.
  std::vector<RankingSamples> mine(samples_.size());
  std::vector<BadIdCount> bad_ids;
  while (LoadedBatch* const loaded = loader.next()) {
    Batch& batch = loaded->batch;
    bad_ids.insert(bad_ids.end(), batch.bad_ids.begin(), batch.bad_ids.end());
    const Scores scores = score_batch(learner, batch);
    if (learner.gpus != nullptr) learner.gpus->wait(learner.gpus->begun());
    add_predictions(*learner.model, scores, learner.compute.stream, mine);
    fault_point("evaluation.batch");
    if (!loaded->last_part) continue;
    for (std::size_t k = 0; k < samples_.size(); ++k)
      samples_[k].merge(gather(std::exchange(mine[k], RankingSamples()), comm));
    bad_ids_.add(gather(std::exchange(bad_ids, {}), comm));
    progress.advance_to(samples_.front().size());
    if (comm.sum<std::int64_t>(stop != nullptr && *stop ? 1 : 0) > 0) return false;
  }
  return true;
}

std::optional<EvaluationResult> Evaluator::run(const std::atomic<bool>* stop, Communicator& comm) {
  const Clock::time_point start = Clock::now();
  comm.enter("evaluation");
  fault_point("evaluation.begin");
  if (!baseline_ && comm.rank() == 0) {
    baseline_ = experiment_.has_baseline()
                    ? baseline_metrics(experiment_.dataset(), experiment_.options().data.options,
                                       experiment_.anchors().holdout, positions_, baseline_file_)
                    : RankingMetrics();
  }
  Progress progress("evaluate", static_cast<std::int64_t>(positions_.size()), "samples");
  if (!score(progress, stop, comm)) return std::nullopt;
  totals_ = LifetimeMetrics();
  const RankingSamples& first = samples_.front();
  for (std::size_t i = 0; i < first.probabilities().size(); ++i)
    totals_.add(first.probabilities()[i], first.labels()[i] != 0);
  EvaluationResult result{first.metrics(),
                          baseline_.value_or(RankingMetrics()),
                          totals_.auc.value(),
                          seconds_since(start),
                          {},
                          {},
                          {}};
  const std::vector<std::string> tasks = experiment_.learner().model->tasks();
  for (std::size_t k = 0; tasks.size() > 1 && k < tasks.size(); ++k)
    result.tasks[tasks[k]] = samples_[k].metrics();
  if (const auto& cutoffs = experiment_.options().evaluation.ranking_k; !cutoffs.empty())
    result.lists = list_metrics(first.probabilities(), first.labels(), lists_, cutoffs);
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
  write_npy(staged.path() / "label.npy", samples_.front().labels());
  write_npy(staged.path() / "score.npy", samples_.front().probabilities());
  const std::vector<std::string> tasks = experiment_.learner().model->tasks();
  for (std::size_t k = 1; k < tasks.size(); ++k) {
    write_npy(staged.path() / fmt::format("label_{}.npy", k), samples_[k].labels());
    write_npy(staged.path() / fmt::format("score_{}.npy", k), samples_[k].probabilities());
  }
  staged.commit();
}

}  // namespace hstu
