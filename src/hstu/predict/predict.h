// Scores a table of requests with a trained model. docs/predict.md
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "hstu/base/error.h"
#include "hstu/base/json.h"
#include "hstu/predict/columns.h"

namespace hstu {

struct PredictOptions {
  Path model = {};                  // a run or an export
  std::string checkpoint = {};      // a step or "best"; "": the newest
  Path requests = {}, output = {};  // "-": standard input, standard output
  Path users = {};                  // a table of users, whose items are found: in place of requests
  Path data = {};                   // a dataset with the histories; "": the run's
  Path events = {};                 // a table with the histories instead
  ColumnNames columns = {};         // of requests, events and catalogue
  Path catalogue = {};              // a table of the items to score for every request
  bool trained_items = false;       // score all items that training has seen
  std::int64_t top = 0;  // keep the K highest scores of a request; 0: all, in the order of the candidates
  std::string by = {};   // the task whose score ranks; "": the first
  bool exclude_seen = false;  // leave out the items of the user's events before the time of the request
  std::vector<std::string> seen_actions = {};  // of events with one of these actions; none: of all
  std::int64_t beam = 0;                       // of a beam search; 0: the model's own
  std::int64_t batch_size = 0;                 // samples of a batch; 0: as evaluations of the run
  std::string device = {};                     // "": the run's own
  bool row_stable = false;                     // Context::row_stable
  const std::atomic<bool>* stop = nullptr;     // set by a signal: remove the unfinished output, throw Stopped
};

struct Stopped : Error {
  Stopped() : Error("stopped: the unfinished output was removed") {}
};

struct PredictResult {
  std::int64_t requests = 0, scores = 0;  // a score for each candidate of a request
  double seconds = 0;
  std::int64_t excluded = 0;                    // candidates that the user has had
  std::int64_t without_items = 0;               // requests of which nothing else was left
  std::int64_t without_history = 0;             // requests of users without events before their time
  std::int64_t untrained_items = 0;             // scores of items that training has not seen
  std::int64_t untrained_events = 0;            // of a table of events, with such items
  std::int64_t unknown_texts = 0;               // values of context columns that have no code
  std::map<std::string, std::int64_t> bad_ids;  // occurrences of ids outside their tables, by feature
};

// Writes the scores to options.output; a file appears when it is complete. Memory does not depend on the
// number of requests. Throws UsageError for options, columns and schemas that do not fit, Error naming file,
// line and column of a bad row.
PredictResult predict(const PredictOptions& options);

Json to_json(const PredictResult& result);

// Prints a note where texts or items of the tables are unknown.
void tell_unknown_inputs(const PredictResult& result);

// Adds the counts to the result, and says what became of such ids. `of_codes`: they are items without codes.
void add_bad_ids(const BadIds& bad_ids, bool of_codes, PredictResult& result);

// The folder in which options.events becomes a dataset.
Path scratch_of(const PredictOptions& options);

}  // namespace hstu
