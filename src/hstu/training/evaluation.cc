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
#include "hstu/step/outputs.h"
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
  tally_ = learner.objective->evaluation_tally();
  bad_ids_ = BadIds(options.on_bad_id, learner.model->features());
  LoaderOptions loading;
  loading.workers = static_cast<int>(options.data.workers);
  loading.division.part_tokens = options.training.micro_batch_tokens;
  loading.division.ranks = comm.size();
  loading.rank = comm.rank();
  loading.seed = options.seed;
  loading.fixed_draws = true;
  loading.finish = with_routes(learner);
  loading.readers = learner.streams();
  Loader loader(experiment_.evaluation_samples(), learner.model->layout(), BatchSchedule(all, order),
                loading);
  std::vector<BadIdCount> bad_ids;
  while (LoadedBatch* const loaded = loader.next()) {
    Batch& batch = loaded->batch;
    bad_ids.insert(bad_ids.end(), batch.bad_ids.begin(), batch.bad_ids.end());
    tally_->add(batch, outputs_of(learner, batch), learner.compute.stream);
    fault_point("evaluation.batch");
    if (!loaded->last_part) continue;
    if (learner.gpus != nullptr) learner.gpus->wait(learner.gpus->begun());
    if (const std::string bad = tally_->settle(learner.compute.stream, comm); !bad.empty())
      throw NotFiniteError(bad);
    bad_ids_.add(gather(std::exchange(bad_ids, {}), comm));
    progress.advance_to(tally_->examples());
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
                    : Measures();
  }
  Progress progress("evaluate", static_cast<std::int64_t>(positions_.size()), "samples");
  if (!score(progress, stop, comm)) return std::nullopt;
  EvaluationResult result;
  result.baseline = baseline_.value_or(Measures());
  experiment_.learner().objective->measure(
      *tally_, {.lists = lists_, .cutoffs = experiment_.options().evaluation.ranking_k}, result);
  for (const BadIds::Feature& feature : bad_ids_.features())
    if (feature.count > 0) result.bad_ids[feature.name] = feature.count;
  result.seconds = seconds_since(start);
  const MetricSpec& headline = experiment_.options().model.metrics().front();
  const std::optional<double> value = result.find(headline.name);
  progress.finish(value ? fmt::format("{} {:.4f}", headline.title, *value)
                        : fmt::format("{} undefined for these samples", headline.title));
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
  experiment_.learner().objective->write_predictions(*tally_, staged.path());
  staged.commit();
}

}  // namespace hstu
