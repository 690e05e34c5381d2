// The baselines of ranks over a catalogue, of the evaluated samples of a run.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "hstu/experiment/experiment.h"
#include "hstu/metrics/measures.h"
#include "hstu/objective/evaluation_result.h"

namespace hstu {

struct CatalogueBaselines {
  std::map<std::string, Measures> measures;  // by kNextItemRules
  // Rules without measures: why, in words for people.
  std::map<std::string, std::string> left_out = {};
  std::vector<std::int64_t> counts;  // (V) of the catalogue's items; of events that train
};

// Of the events at `positions`: metrics of ranks by popularity, by pairs and by the latest item, without the
// items that the objective leaves out. They know the events that `holdout` leaves to training.
CatalogueBaselines catalogue_baselines(const Experiment& experiment, const Holdout& holdout,
                                       std::span<const std::int64_t> positions);

// What a reader of a catalogue's ranks must know, for people: targets that the model could not answer, and
// those that the user has had. Empty: nothing.
std::vector<std::string> notes_on_ranks(const EvaluationResult& result);

// "the model's NDCG@10 of 0.0100 is worse than that of markov (0.1261), ...", for people: which baselines
// have a better value of the first metric of `specs` than the model; "the baseline" where those by name have
// no value of it. "": none has.
std::string better_baselines(const EvaluationResult& result, MetricSpecs specs);

}  // namespace hstu
