#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hstu/base/error.h"
#include "hstu/base/terminal.h"
#include "hstu/base/text.h"
#include "hstu/cli/commands.h"
#include "hstu/run/folder.h"
#include "hstu/run/other_data.h"
#include "hstu/run/pruned.h"
#include "hstu/run/state.h"
#include "hstu/training/catalogue_baselines.h"
#include "hstu/training/evaluation.h"
#include "hstu/training/run_parts.h"
#include "hstu/training/trained_samples.h"

namespace hstu {
namespace {

struct EvalWords {
  Path run, predictions, data;
  std::string checkpoint, device, split;
  std::int64_t batch_size = 0, beam = 0, max_samples = -1;
  int threads = 0;
  bool only_unseen = false;
  std::optional<bool> weighted;
};

// What of the users' held-out ends is scored.
void choose_split(RunOptions& options, bool test) {
  HoldoutOptions& holdout = options.evaluation.holdout;
  if (holdout.split == LastSplit::none)
    fail_usage(
        "--split: the run has evaluation.split = \"\": its hold-out is scored as it is; leave --split out");
  if (holdout.split == LastSplit::paper && !test)
    fail_usage("--split valid: the run has evaluation.split = \"paper\", which validates nothing: set test");
  holdout.scores_test = test;
}

struct OpenedModel {
  std::unique_ptr<Experiment> experiment;
  RunState state;
  bool other_data = false;
  std::optional<Checkpoint> checkpoint = {};
};

// `data`: another dataset than the run's; "": none.
OpenedModel open_model(Checkpoint checkpoint, RunOptions options, const Path& data) {
  OpenedModel opened;
  std::optional<Dataset> other;
  if (!data.empty()) {
    other.emplace(data);
    check_readable(checkpoint, options.data.path, *other);
    opened.other_data = other->manifest().id != saved_dataset(checkpoint);
    options.data.path = data;
  }
  const RunOptions complete = with_table_rows(options, checkpoint);
  opened.experiment = std::make_unique<Experiment>(
      complete, opened.other_data
                    ? std::make_unique<TaskData>(complete, *std::move(other), std::vector<std::string>())
                    : open_data_of(complete, checkpoint));
  opened.state = opened.other_data ? load_run_for_other_data(checkpoint, *opened.experiment)
                                   : load_run(checkpoint, *opened.experiment);
  if (opened.other_data) opened.experiment->take_known_items();
  opened.checkpoint = std::move(checkpoint);
  return opened;
}

// The samples of other data: those that its hold-out takes, all without one.
std::vector<std::int64_t> samples_of(const Experiment& experiment) {
  const Anchors& anchors = experiment.anchors();
  const AnchorList& list = anchors.evaluation.size() > 0 ? anchors.evaluation : anchors.training;
  const std::int64_t limit = experiment.options().evaluation.max_samples;
  return list.first(limit > 0 ? std::min(limit, list.size()) : list.size());
}

// Says how many samples of other data the run has trained on, and leaves them out if `only_unseen`.
Evaluator evaluator_of_other_data(const OpenedModel& opened, const Checkpoint& checkpoint,
                                  const RunOptions& options, bool only_unseen, Json& json) {
  Experiment& experiment = *opened.experiment;
  std::vector<std::int64_t> positions = samples_of(experiment);
  std::vector<std::uint8_t> trained;
  try {
    RunOptions own = options;
    if (experiment.dataset().manifest().extends_or_is(saved_dataset(checkpoint)))
      own.data.path = experiment.options().data.path;
    own = with_table_rows(own, checkpoint);
    trained = trained_samples(own, *open_data_of(own, checkpoint), opened.state.next, experiment.dataset(),
                              positions);
  } catch (const Error& error) {
    if (only_unseen) fail_usage("--only-unseen needs the dataset of the run: {}", error.what());
    print_note("how many of these samples the run has trained on is not known: {}\n", error.what());
    json["trained_samples"] = nullptr;
    return Evaluator::of_positions(experiment, std::move(positions));
  }
  const std::int64_t count = std::count(trained.begin(), trained.end(), 1);
  json["trained_samples"] = count;
  print_note("the run has trained on {} of {} samples{}\n", with_separators(count),
             with_separators(std::ssize(positions)),
             count == 0    ? ""
             : only_unseen ? ", which are left out"
                           : ": --only-unseen leaves them out");
  if (only_unseen) {
    std::vector<std::int64_t> unseen;
    for (std::size_t i = 0; i < positions.size(); ++i)
      if (trained[i] == 0) unseen.push_back(positions[i]);
    if (unseen.empty()) fail_usage("--only-unseen: the run has trained on all of these samples");
    positions = std::move(unseen);
  }
  return Evaluator::of_positions(experiment, std::move(positions));
}

// Of what training evaluated when it saved the checkpoint.
Evaluator evaluator_of_own_data(const OpenedModel& opened, const RunFolder& folder) {
  Experiment& experiment = *opened.experiment;
  if (experiment.options().evaluation.next_window) {
    const auto window = window_to_score(experiment, opened.state.next);
    if (!window)
      fail_usage(
          "{}: the checkpoint of step {} is not at the beginning of a window that is new to it: choose "
          "another "
          "one with --checkpoint, or another dataset with --data",
          folder.path.string(), opened.state.step);
    return Evaluator::of_window(experiment, *window);
  }
  return Evaluator(experiment, folder.baseline());
}

}  // namespace

void add_eval_command(CLI::App& app) {
  auto words = std::make_shared<EvalWords>();
  CLI::App* const command =
      app.add_subcommand("eval", "Evaluate a run's checkpoint, exactly as training did, or on other data");
  command->add_option("RUN", words->run, "folder of the run")->required();
  command->add_option("--checkpoint", words->checkpoint, "of this step, or best; default: the newest");
  command->add_option("--data", words->data,
                      "the dataset, when it has moved since the run, or another one of the same schema");
  command
      ->add_option("--split", words->split,
                   "valid or test, of a run with evaluation.split; default: what training scored")
      ->check(CLI::IsMember({"valid", "test"}));
  command->add_flag("--only-unseen", words->only_unseen,
                    "with --data: leave out samples that the run has trained on, by user, item and time");
  command->add_option("--beam", words->beam, "prefixes that a beam search keeps; default: the run's own")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 16));
  command
      ->add_option("--max-samples", words->max_samples,
                   "score so many samples at most, 0: all; default: evaluation.max_samples of the run")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 50));
  // A function: a flag of an optional is set to false where it is not given.
  command->add_flag_function(
      "--weighted,!--no-weighted", [words](std::int64_t count) { words->weighted = count > 0; },
      "metrics count samples with the weights of the dataset, or each once; default: as in training");
  command->add_option("--batch-size", words->batch_size, "samples of a batch; default: as in training")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 24));
  command->add_option(
      "--predictions", words->predictions,
      "write user, item, time, label, score and position of every sample as .npy into this new folder");
  command->add_option("--device", words->device, "host, cuda, cuda:N or auto; default: the run's own");
  command->add_option("--threads", words->threads, "0: all cores")->check(CLI::Range(0, kMostThreads));
  command->footer(
      "Prints one JSON object, the fields of the run's eval lines. On another dataset the hold-out\n"
      "follows the rule of the run's configuration; a run that holds nothing out scores all samples.\n"
      "The baseline is that dataset's. trained_samples says how many of them the run has trained on.\n"
      "With --split test the last event of each user is asked for, from all events before it.\n"
      "Examples:\n  hstu eval run --predictions scores\n  hstu eval run --data next-week --only-unseen");
  command->callback([words] {
    use_threads(words->threads);
    if (words->only_unseen && words->data.empty())
      fail_usage("--only-unseen needs --data: what a run holds out it never trains on");
    if (!words->predictions.empty()) const StagedFolder possible(words->predictions);  // before long work
    const RunFolder folder = open_run_folder(words->run);
    RunOptions options = read_run_options(folder);
    if (!words->device.empty()) options.device = words->device;
    if (!words->split.empty()) choose_split(options, words->split == "test");
    set_beam(options.model.options(), words->beam);
    if (words->max_samples >= 0) options.evaluation.max_samples = words->max_samples;
    options.evaluation.weighted = words->weighted.value_or(options.evaluation.weighted);
    if (words->batch_size > 0) options.evaluation.batch_size = words->batch_size;
    const OpenedModel opened =
        read_checkpoint(folder.checkpoints(), words->checkpoint,
                        [&](const Path& path) { return open_model(Checkpoint(path), options, words->data); });
    Json json{{"step", opened.state.step}};
    Evaluator evaluator = opened.other_data ? evaluator_of_other_data(opened, *opened.checkpoint, options,
                                                                      words->only_unseen, json)
                                            : evaluator_of_own_data(opened, folder);
    if (!evaluator.has_samples()) {
      fail_usage(
          "the run holds nothing out: set one of evaluation.holdout_windows, holdout_fraction, "
          "holdout_seconds, holdout_last, split");
    }
    const EvaluationResult result = *evaluator.run();
    json.update(to_json(result, options.model.metrics()));
    if (!words->predictions.empty()) evaluator.write_predictions(words->predictions);
    fmt::print("{}\n", json.dump(2));
    for (const std::string& note : notes_on_ranks(result)) print_note("{}\n", note);
    if (const std::string better = better_baselines(result, options.model.metrics()); !better.empty())
      print_note("{}\n", better);
  });
}

}  // namespace hstu
