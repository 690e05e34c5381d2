#include "hstu/training/evaluation.h"

#include <algorithm>
#include <array>
#include <utility>

#include "hstu/base/clock.h"
#include "hstu/base/error.h"
#include "hstu/base/faults.h"
#include "hstu/base/npy.h"
#include "hstu/baseline/baseline.h"
#include "hstu/baseline/baseline_file.h"
#include "hstu/experiment/evaluation_batches.h"
#include "hstu/experiment/over_ranks.h"
#include "hstu/experiment/routes.h"
#include "hstu/metrics/auc.h"
#include "hstu/metrics/list_metrics.h"
#include "hstu/metrics/weighted.h"
#include "hstu/step/outputs.h"
#include "hstu/training/catalogue_baselines.h"
#include "hstu/training/ranked_lists.h"

namespace hstu {
namespace {

ScoredWindow describe(const Dataset& dataset, std::int64_t window,
                      const std::vector<std::int64_t>& positions) {
  ScoredWindow scored{.window = window, .samples = std::ssize(positions)};
  const auto earlier = [&](std::int64_t a, std::int64_t b) { return dataset.time()[a] < dataset.time()[b]; };
  const auto [first, last] = std::minmax_element(positions.begin(), positions.end(), earlier);
  scored.first_time = dataset.time()[*first];
  scored.last_time = dataset.time()[*last];
  return scored;
}

std::string why_undefined(const EvaluationResult& result, const std::string& metric) {
  const auto found = result.undefined.find(metric);
  return found == result.undefined.end() ? "by these samples" : found->second;
}

std::vector<std::uint8_t> labels_of(const Dataset& dataset, const EvaluatedExamples& examples) {
  const std::uint8_t bit = dataset.manifest().label_bit();
  std::vector<std::uint8_t> labels;
  labels.reserve(examples.item.size());
  for (std::size_t i = 0; i < examples.item.size(); ++i) {
    const bool has = (dataset.action()[static_cast<std::size_t>(examples.position[i])] & bit) != 0;
    labels.push_back(examples.is_own[i] != 0 && has ? 1 : 0);
  }
  return labels;
}

}  // namespace

std::optional<std::int64_t> window_to_score(const Experiment& experiment, BatchCursor next) {
  const std::optional<BatchCursor> first = experiment.schedule(next).upcoming();
  if (!first || first->batch != 0 || first->epoch != 0) return std::nullopt;
  return first->window;
}

Evaluator::Evaluator(Experiment& experiment, Path baseline)
    : Evaluator(experiment, held_out_positions(experiment.options(), experiment.anchors()),
                experiment.anchors().holdout, std::move(baseline), std::nullopt) {}

Evaluator Evaluator::of_window(Experiment& experiment, std::int64_t window) {
  std::vector<std::int64_t> positions = window_positions(experiment.options(), experiment.anchors(), window);
  const ScoredWindow scored = describe(experiment.dataset(), window, positions);
  Holdout holdout = experiment.anchors().holdout;
  holdout.time_begin = scored.first_time;
  return {experiment, std::move(positions), std::move(holdout), {}, scored};
}

Evaluator Evaluator::of_positions(Experiment& experiment, std::vector<std::int64_t> positions) {
  return {experiment, std::move(positions), experiment.anchors().holdout, {}, std::nullopt};
}

Evaluator::Evaluator(Experiment& experiment, std::vector<std::int64_t> positions, Holdout holdout,
                     Path baseline, std::optional<ScoredWindow> window)
    : experiment_(experiment),
      positions_(std::move(positions)),
      holdout_(std::move(holdout)),
      baseline_file_(std::move(baseline)),
      window_(window),
      examples_(evaluated_examples(experiment.dataset(), experiment.evaluation_samples(), positions_,
                                   experiment.options().seed)) {
  if (experiment.options().evaluation.weighted && !experiment.dataset().has_weights())
    fail_usage(
        "evaluation.weighted: the dataset {} has no weights: prepare it with weight in the schema, or set "
        "evaluation.weighted = false (hstu eval --no-weighted)",
        experiment.dataset().folder().string());
  if (!experiment.options().evaluation.ranking_k.empty())
    lists_ = ranked_lists(experiment.dataset(), examples_.position, ranking_list());
}

std::string Evaluator::ranking_list() const {
  const EvaluationSection& options = experiment_.options().evaluation;
  if (!options.ranking_list.empty()) return options.ranking_list;
  return options.negatives.per_positive > 0 ? "sample" : "user";
}

// Negatives have no rate of labels, so that baselines of items take the place of the running rates.
void Evaluator::measure_baselines() {
  if (baseline_) return;
  baseline_ = Measures();
  if (experiment_.options().mlperf) return;  // its time would count
  if (experiment_.learner().objective->ranks_items()) {
    CatalogueBaselines found = catalogue_baselines(experiment_, holdout_, positions_);
    item_baselines_ = std::move(found.measures);
    left_out_ = std::move(found.left_out);
    baseline_ = item_baselines_.at("markov");
    item_counts_ = std::move(found.counts);
    return;
  }
  if (!experiment_.has_baseline()) return;
  if (experiment_.evaluation_samples().draws_negatives()) return measure_items();
  baseline_ = baseline_metrics(experiment_.dataset(), experiment_.options().data.options, holdout_,
                               positions_, baseline_file_, experiment_.options().evaluation.weighted);
  if (!lists_.empty()) measure_items();
}

void Evaluator::measure_items() {
  const bool draws = experiment_.evaluation_samples().draws_negatives();
  const Dataset& dataset = experiment_.dataset();
  std::optional<TrainingItems> counted;
  if (window_ || !draws) {
    try {
      counted.emplace(dataset, holdout_, false);
    } catch (const UsageError&) {  // no positive trains, or came before the window: nothing is popular
      return;
    }
  }
  const TrainingItems& items = counted ? *counted : experiment_.training_items();
  const std::vector<float> weights = weights_of_examples();
  const auto measure = [&](const std::string& name, const std::vector<double>& scores) {
    const std::vector<std::uint8_t> labels = labels_of(dataset, examples_);
    Measures& measures = item_baselines_[name];
    measures.add("auc", weights.empty() ? auc(scores, labels) : weighted_auc(scores, labels, weights));
    const std::vector<std::int64_t>& cutoffs = experiment_.options().evaluation.ranking_k;
    if (cutoffs.empty()) return;
    for (const auto& [metric, value] : list_metrics(scores, labels, lists_, cutoffs, weights))
      measures.add(metric, value);
  };
  measure("co_occurrence", score_co_occurrence(dataset, holdout_, experiment_.evaluation_samples(), items,
                                               examples_.ranked()));
  if (!draws) return measure("running_rates", score_baseline(dataset, holdout_, positions_).score);
  measure("popularity", score_popularity(items, examples_.ranked()));
  baseline_->add("auc", item_baselines_["popularity"].find("auc"));
  for (const MetricSpec& metric : experiment_.options().model.metrics())
    if (metric.logs_baseline && !baseline_->find(metric.name))
      left_out_[fmt::format("baseline_{}", metric.name)] = "popularity orders items and has no probabilities";
}

std::function<float(std::int64_t)> Evaluator::weight() const {
  if (!experiment_.options().evaluation.weighted) return {};
  return [&dataset = experiment_.dataset()](std::int64_t position) { return dataset.weight(position); };
}

std::vector<float> Evaluator::weights_of_examples() const {
  std::vector<float> weights;
  if (const auto of = weight())
    for (const std::int64_t position : examples_.position) weights.push_back(of(position));
  return weights;
}

std::unique_ptr<Loader> Evaluator::open_loader(const Communicator& comm) {
  const RunOptions& options = experiment_.options();
  ScheduleOptions order;
  order.batch_size = scored_batch_size(options, experiment_.evaluation_samples(), comm.size());
  all_ = AnchorList(positions_, std::array{std::int64_t{0}, static_cast<std::int64_t>(positions_.size())});
  Learner& learner = experiment_.learner();
  LoaderOptions loading = evaluation_loading(options, comm.size(), comm.rank());
  loading.finish = with_routes(learner);
  loading.readers = learner.streams();
  return std::make_unique<Loader>(experiment_.evaluation_samples(), learner.model->layout(),
                                  BatchSchedule(all_, order), loading);
}

bool Evaluator::score(Loader& loader, const std::function<void()>& progressed, const std::atomic<bool>* stop,
                      Communicator& comm) {
  Learner& learner = experiment_.learner();
  tally_ = learner.objective->evaluation_tally({.catalogues = learner.catalogue_rows(false),
                                                .dataset = &experiment_.dataset(),
                                                .compute = learner.compute});
  bad_ids_ = BadIds(experiment_.options().on_bad_id, learner.model->features());
  wait_ms_ = 0;
  std::vector<BadIdCount> bad_ids;
  while (LoadedBatch* const loaded = loader.next()) {
    Batch& batch = loaded->batch;
    wait_ms_ += loaded->data_wait_ms;
    bad_ids.insert(bad_ids.end(), batch.bad_ids.begin(), batch.bad_ids.end());
    tally_->add(batch, outputs_of(learner, batch), learner.compute.stream);
    fault_point("evaluation.batch");
    if (!loaded->last_part) continue;
    if (learner.gpus != nullptr) learner.gpus->wait(learner.gpus->begun());
    if (const std::string bad = tally_->settle(learner.compute.stream, comm); !bad.empty())
      throw NotFiniteError(bad);
    bad_ids_.add(gather(std::exchange(bad_ids, {}), comm));
    progressed();
    if (comm.sum<std::int64_t>(stop != nullptr && *stop ? 1 : 0) > 0) return false;
  }
  return true;
}

std::optional<EvaluationResult> Evaluator::run(const std::atomic<bool>* stop, Communicator& comm,
                                               const std::function<void()>& progressed) {
  const Clock::time_point start = Clock::now();
  comm.enter("evaluation");
  const Group& context = experiment_.learner().groups.context;
  if (context.size() > 1) context.host.enter("evaluation");
  fault_point("evaluation.begin");
  // It builds batches while baselines are measured.
  const std::unique_ptr<Loader> loader = loader_ ? std::move(loader_) : open_loader(comm);
  if (comm.rank() == 0) measure_baselines();
  Progress progress(window_ ? fmt::format("evaluate window {}", window_->window) : "evaluate",
                    examples_.size(), "samples");
  const auto advance = [&] {
    progress.advance_to(tally_->examples());
    progressed();
  };
  if (!score(*loader, advance, stop, comm)) return std::nullopt;
  EvaluationResult result;
  result.baseline = baseline_.value_or(Measures());
  result.item_baselines = item_baselines_;
  result.undefined = left_out_;
  result.next_window = window_;
  experiment_.learner().objective->measure(*tally_,
                                           {.lists = lists_,
                                            .cutoffs = experiment_.options().evaluation.ranking_k,
                                            .items = experiment_.catalogue(),
                                            .item_counts = item_counts_,
                                            .positions = examples_.position,
                                            .weight = weight()},
                                           result);
  for (const BadIds::Feature& feature : bad_ids_.features())
    if (feature.count > 0) result.bad_ids[feature.name] = feature.count;
  result.wait_ms = wait_ms_;
  result.seconds = seconds_since(start);
  const MetricSpec& headline = experiment_.options().model.metrics().front();
  const std::optional<double> value = result.find(headline.name);
  progress.finish(value ? fmt::format("{} {:.4f}", headline.title, *value)
                        : fmt::format("{} undefined: {}", headline.title,
                                      why_undefined(result, std::string(headline.name))));
  fault_point("evaluation.end");
  return result;
}

void Evaluator::write_predictions(const Path& folder) const {
  StagedFolder staged(folder);
  require(tally_->examples() == examples_.size(), "{} of {} examples have predictions", tally_->examples(),
          examples_.size());
  std::vector<std::int64_t> user, time;
  for (const std::int64_t position : examples_.position) {
    user.push_back(
        experiment_.dataset().user_ids()[static_cast<std::size_t>(experiment_.dataset().user_at(position))]);
    time.push_back(experiment_.dataset().time()[position]);
  }
  write_npy(staged.path() / "user.npy", user);
  write_npy(staged.path() / "item.npy", examples_.item);
  write_npy(staged.path() / "time.npy", time);
  write_npy(staged.path() / "position.npy", examples_.position);
  if (const std::vector<float> weights = weights_of_examples(); !weights.empty())
    write_npy(staged.path() / "weight.npy", weights);
  experiment_.learner().objective->write_predictions(*tally_, staged.path());
  staged.commit();
}

}  // namespace hstu
