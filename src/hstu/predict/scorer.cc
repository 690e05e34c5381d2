#include "hstu/predict/scorer.h"

#include <algorithm>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/device/pinned_memory.h"
#include "hstu/embedding/table_section.h"
#include "hstu/objective/ranking_objective.h"
#include "hstu/step/outputs.h"

namespace hstu {
namespace {

std::vector<std::int64_t> ids_of(const EmbeddingTable& table) {
  std::vector<std::int64_t> ids;
  ids.reserve(static_cast<std::size_t>(table.rows_alive()));
  for (const auto& place : table.places_by_id()) ids.push_back(place.id);
  return ids;
}

const RankingObjective& ranking_of(const Learner& learner) {
  const RankingObjective* const ranking = learner.objective->ranking();
  if (ranking == nullptr) fail_usage("a model of this kind does not score candidates");
  return *ranking;
}

}  // namespace

void load_model(const Checkpoint& checkpoint, Learner& learner) {
  std::vector<Section> sections = table_sections(learner.tables);
  sections.push_back(parameters_section(learner.model->parameters().all(), learner.compute.stream));
  for (const Section& section : sections)
    section.load(SectionReader(checkpoint.path(), section.name, checkpoint.manifest()));
}

Scorer::Scorer(const RunOptions& options, const Checkpoint& checkpoint, const Dataset& dataset, Task task)
    : task_(std::move(task)),
      samples_(dataset, task_.evaluation),
      learner_(options, std::move(task_.model), std::move(task_.objective),
               open_device(choose_device(options).device)),
      tasks_(ranking_of(learner_).tasks()),
      bad_ids_(OnBadId::count, learner_.model->features()),
      sample_scratch_(samples_.scratch()),
      batch_(transfer_memory(learner_.compute.device())) {
  load_model(checkpoint, learner_);
  trained_items_ = ids_of(learner_.tables[0]);
}

std::vector<float> Scorer::score(std::span<const Candidate> candidates) {
  samples_.build(candidates, built_, sample_scratch_);
  batch_.clear();
  learner_.model->layout().lay_out(built_, layout_scratch_, batch_);
  batch_.supervised = batch_.samples;
  bad_ids_.add(batch_.bad_ids);
  batch_.copy_to(learner_.compute);
  const Stream& stream = learner_.compute.stream;
  const RankingObjective& ranking = ranking_of(learner_);
  std::vector<float> probabilities = ranking.probabilities(
      outputs_of(learner_, batch_), ranking.examples(batch_), stream, tasks_.size(), "request");
  require(probabilities.size() == built_.candidate_item.size() * tasks_.size(),
          "expected {} scores, found {}", built_.candidate_item.size() * tasks_.size(), probabilities.size());
  return probabilities;
}

bool Scorer::is_trained(std::int64_t item) const {
  return std::binary_search(trained_items_.begin(), trained_items_.end(), item);
}

}  // namespace hstu
