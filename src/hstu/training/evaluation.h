// Scores held-out samples, or a window before it is trained, with the model and the trivial baseline, for
// training and `hstu eval` alike.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hstu/base/files.h"
#include "hstu/base/progress.h"
#include "hstu/batching/loader.h"
#include "hstu/comm/communicator.h"
#include "hstu/experiment/experiment.h"
#include "hstu/objective/evaluation_result.h"
#include "hstu/objective/tally.h"
#include "hstu/training/evaluated_examples.h"

namespace hstu {

// The window whose first batch is the next one of a run, if it was not trained before: what a run with
// evaluation.next_window scores there.
std::optional<std::int64_t> window_to_score(const Experiment& experiment, BatchCursor next);

class Evaluator {
 public:
  // Of the held-out samples. `baseline` is the file that keeps the baseline's metrics. The first run() reads
  // it; if it is missing, run() computes them, which reads the whole dataset, and writes the file. "": no
  // file.
  explicit Evaluator(Experiment& experiment, Path baseline = {});
  // Of a window of training, at most evaluation.max_samples of its samples. Baselines know what came before
  // the window's first sample.
  static Evaluator of_window(Experiment& experiment, std::int64_t window);

  // Of these anchors, in any order. Baselines know what the hold-out leaves to training.
  static Evaluator of_positions(Experiment& experiment, std::vector<std::int64_t> positions);

  // False if no samples are held out.
  bool has_samples() const { return !positions_.empty(); }
  // Each rank scores its slice of every batch; all ranks get the model's metrics of all samples, rank 0 those
  // of the baseline too. Does not change the learner. Empty if `stop` became true before the end. Throws
  // NotFiniteError, the same on all ranks, if a score of one of them is not finite.
  // `progressed` is called after each batch.
  std::optional<EvaluationResult> run(
      const std::atomic<bool>* stop = nullptr, Communicator& comm = one_rank(),
      const std::function<void()>& progressed = [] {});
  // Begins to build the batches of the next run() with the same `comm`, so that it does not wait for the
  // first.
  void prepare(const Communicator& comm) { loader_ = open_loader(comm); }

  // The bad ids of the last run(), counted separately from training's.
  const BadIds& bad_ids() const { return bad_ids_; }
  // The predictions of the last run().
  const Tally& tally() const { return *tally_; }

  // Writes the examples of the last run(): user.npy, item.npy, time.npy, position.npy (event in the dataset),
  // and what the objective writes. Creates `folder`. Negatives have the position of their sample.
  void write_predictions(const Path& folder) const;

 private:
  Evaluator(Experiment& experiment, std::vector<std::int64_t> positions, Holdout holdout, Path baseline,
            std::optional<ScoredWindow> window);

  std::unique_ptr<Loader> open_loader(const Communicator& comm);
  // Into tally_; false when stopped.
  bool score(Loader& loader, const std::function<void()>& progressed, const std::atomic<bool>* stop,
             Communicator& comm);
  std::string ranking_list() const;
  void measure_baselines();  // once
  void measure_items();
  // With evaluation.weighted: of the event at a position; of each example. Else unset, and empty.
  std::function<float(std::int64_t)> weight() const;
  std::vector<float> weights_of_examples() const;

  Experiment& experiment_;
  std::vector<std::int64_t> positions_;
  Holdout holdout_;  // that the baselines do not know
  Path baseline_file_;
  std::optional<ScoredWindow> window_;  // of training
  AnchorList all_;                      // of these positions, for a loader
  std::unique_ptr<Loader> loader_;      // of the next run(), if prepare() was called
  EvaluatedExamples examples_;
  std::vector<std::int64_t> lists_;  // of each example, if lists are measured
  std::optional<Measures> baseline_;
  std::map<std::string, Measures> item_baselines_;
  std::map<std::string, std::string> left_out_;  // of those, with the reason
  std::vector<std::int64_t> item_counts_;        // of rank 0, if the objective reads a catalogue
  std::unique_ptr<Tally> tally_;                 // of the last run()
  BadIds bad_ids_;                               // of the last run()
  double wait_ms_ = 0;                           // for its batches
};

}  // namespace hstu
