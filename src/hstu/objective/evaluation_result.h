// The result of an evaluation, as plain values for logs, checkpoints and programs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "hstu/base/json.h"
#include "hstu/metrics/measures.h"
#include "hstu/metrics/metric_spec.h"

namespace hstu {

// A window of training that was scored before it was trained.
struct ScoredWindow {
  std::int64_t window = 0;  // its number in the run, as in the log's `window`
  std::int64_t samples = 0;
  std::int64_t first_time = 0, last_time = 0;  // of these samples, seconds since 1970
};

struct EvaluationResult {
  Measures model;     // of all samples; of several tasks, of the first
  Measures estimate;  // the same in constant memory, which a run of any length can have: "auc_binned"
  Measures baseline;  // of the same samples; empty: there is none
  Measures lists;     // at evaluation.ranking_k; empty if no k is given
  // Of scores that need no model. With evaluation.negatives AUC and `lists` of "popularity" and
  // "co_occurrence"; of a catalogue's ranks the metrics of "popularity", "markov" and "last".
  std::map<std::string, Measures> item_baselines;
  // Of a catalogue's ranks: the same metrics of parts of the samples (retrieval_measures.h).
  std::map<std::string, Measures> parts;
  // Of a catalogue's ranks: samples that count as not found because the model cannot answer them, by why
  // (retrieval_tally.h); none: there are none.
  std::map<std::string, std::int64_t> unanswered;
  std::map<std::string, Measures> tasks;         // each of the model's tasks; empty if it has only one
  std::map<std::string, std::string> undefined;  // why, by metric, in words for people
  // Ids outside their table in the evaluated samples, by feature; features without such ids are omitted.
  std::map<std::string, std::int64_t> bad_ids;
  std::optional<ScoredWindow> next_window;  // of evaluation.next_window, what was scored
  double seconds = 0;
  double wait_ms = 0;  // for batches, the first one included

  // A metric of the model, also of lists. Empty if it was not measured, or the samples do not define it.
  std::optional<double> find(std::string_view metric) const;
};

// {"auc", "ne", ..., "auc_binned", "baseline_auc", "baseline_ne"} and, if there are any, "mrr", "ndcg@10" and
// the like, "next_window", "unanswered", "bad_ids", "tasks", "item_baselines", "parts" and "undefined", as
// the log and `hstu eval` report them. `specs`: of the kind of model.
Json to_json(const EvaluationResult& result, MetricSpecs specs);

// Converts the whole result except its time to the form in checkpoints, and back.
Json evaluation_state(const EvaluationResult& result);
EvaluationResult evaluation_from_state(const Json& state);

}  // namespace hstu
