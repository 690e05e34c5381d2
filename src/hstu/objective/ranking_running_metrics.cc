#include "hstu/objective/ranking_running_metrics.h"

#include <string>
#include <utility>
#include <vector>

#include "hstu/base/error.h"
#include "hstu/objective/ranking_tally.h"

namespace hstu {
namespace {

// The nonempty bins of a histogram.
struct Bins {
  std::vector<std::int32_t> places;
  std::vector<std::int64_t> positives, negatives;
};

Bins bins_of(const BinnedAuc& auc) {
  Bins bins;
  for (std::size_t b = 0; b < auc.positives().size(); ++b) {
    if (auc.positives()[b] == 0 && auc.negatives()[b] == 0) continue;
    bins.places.push_back(static_cast<std::int32_t>(b));
    bins.positives.push_back(static_cast<std::int64_t>(auc.positives()[b]));
    bins.negatives.push_back(static_cast<std::int64_t>(auc.negatives()[b]));
  }
  return bins;
}

BinnedAuc read_bins(const SafetensorsFile& file, const std::string& name) {
  std::vector<std::uint64_t> positives(BinnedAuc::kBins), negatives(BinnedAuc::kBins);
  const auto places = file.column<std::int32_t>(name + ".bins");
  const Shape shape{static_cast<std::int64_t>(places.size())};
  const auto of_positives = file.values<std::int64_t>(name + ".positives", shape);
  const auto of_negatives = file.values<std::int64_t>(name + ".negatives", shape);
  for (std::size_t i = 0; i < places.size(); ++i) {
    check(places[i] >= 0 && places[i] < BinnedAuc::kBins, "metrics: expected bins 0 to {}, found {}",
          BinnedAuc::kBins - 1, places[i]);
    positives[static_cast<std::size_t>(places[i])] = static_cast<std::uint64_t>(of_positives[i]);
    negatives[static_cast<std::size_t>(places[i])] = static_cast<std::uint64_t>(of_negatives[i]);
  }
  return {std::move(positives), std::move(negatives)};
}

template <typename T>
TensorSpec column_of(std::string name, std::size_t size) {
  return {std::move(name), dtype_of<T>(), {static_cast<std::int64_t>(size)}};
}

Measures lifetime(const LifetimeMetrics& metrics) {
  Measures measures;
  measures.add("lifetime_auc", metrics.auc.value());
  measures.add("lifetime_ne", metrics.sums.ne());
  measures.add("lifetime_accuracy", metrics.sums.accuracy());
  measures.add_count("lifetime_n", metrics.sums.n());
  return measures;
}

template <typename Values>
void write_column(SectionWriter& writer, const Values& values) {
  writer.write(values.data(), values.size() * sizeof(values[0]));
}

}  // namespace

void RankingRunningMetrics::add_step(const Tally& predictions) {
  const RankingTally& tally = as_ranking(predictions);
  if (!tally.sums()) return add_step(tally.samples().front());
  window_.merge(tally.samples().front());
  training_.merge(*tally.sums());
}

void RankingRunningMetrics::add_evaluation(const Tally& evaluation) {
  add_evaluation(as_ranking(evaluation).samples().front());
}

void RankingRunningMetrics::add_step(const RankingSamples& predictions) {
  window_.merge(predictions);
  training_.add(predictions);
}

Measures RankingRunningMetrics::training() const {
  const RankingMetrics window = window_.metrics();
  Measures measures;
  measures.add("window_auc", window.auc);
  measures.add("window_ne", window.ne);
  measures.add("window_accuracy", window.accuracy);
  measures.add("window_gauc", window.gauc);
  measures.add_count("window_n", window.n);
  measures.add(lifetime(training_));
  return measures;
}

Measures RankingRunningMetrics::evaluations() const {
  return lifetime(evaluations_);
}

void RankingRunningMetrics::save(SectionWriter& writer) const {
  const Bins training = bins_of(training_.auc), evaluations = bins_of(evaluations_.auc);
  const std::size_t k = training.places.size(), m = evaluations.places.size(), w = window_.labels().size();
  writer.describe(Json{{"training", training_.sums.state()}, {"evaluations", evaluations_.sums.state()}});
  writer.begin(
      {column_of<std::int64_t>("training.positives", k), column_of<std::int64_t>("training.negatives", k),
       column_of<std::int64_t>("evaluations.positives", m),
       column_of<std::int64_t>("evaluations.negatives", m), column_of<std::int64_t>("window.groups", w),
       column_of<std::int32_t>("training.bins", k), column_of<std::int32_t>("evaluations.bins", m),
       column_of<float>("window.probabilities", w), column_of<std::uint8_t>("window.labels", w)});
  for (const Bins* bins : {&training, &evaluations}) {
    write_column(writer, bins->positives);
    write_column(writer, bins->negatives);
  }
  write_column(writer, window_.groups());
  write_column(writer, training.places);
  write_column(writer, evaluations.places);
  write_column(writer, window_.probabilities());
  write_column(writer, window_.labels());
}

void RankingRunningMetrics::load(const SectionReader& reader) {
  const Json sums = reader.description();
  const SafetensorsFile file = reader.file();
  training_ = {PointwiseSums::from_state(sums.at("training")), read_bins(file, "training")};
  evaluations_ = {PointwiseSums::from_state(sums.at("evaluations")), read_bins(file, "evaluations")};
  const auto labels = file.column<std::uint8_t>("window.labels");
  const Shape shape{static_cast<std::int64_t>(labels.size())};
  const auto probabilities = file.values<float>("window.probabilities", shape);
  const auto groups = file.values<std::int64_t>("window.groups", shape);
  window_.clear();
  for (std::size_t i = 0; i < labels.size(); ++i) window_.add(probabilities[i], labels[i] != 0, groups[i]);
}

Section RankingRunningMetrics::section() {
  return {.name = "metrics",
          .save = [this](SectionWriter& writer) { save(writer); },
          .load = [this](const SectionReader& reader) { load(reader); },
          .may_be_absent = true};
}

}  // namespace hstu
