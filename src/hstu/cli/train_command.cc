#include <algorithm>
#include <atomic>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "hstu/base/faults.h"
#include "hstu/base/terminal.h"
#include "hstu/base/text.h"
#include "hstu/base/version.h"
#include "hstu/cli/commands.h"
#include "hstu/cli/installed.h"
#include "hstu/cli/ranks.h"
#include "hstu/cli/stop_signals.h"
#include "hstu/dataset/manifest.h"
#include "hstu/experiment/command.h"
#include "hstu/experiment/device_choice.h"
#include "hstu/mlperf/submission_facts.h"
#include "hstu/mlperf/verdict_text.h"
#include "hstu/objects/object_url.h"
#include "hstu/plan/group_choice.h"
#include "hstu/plan/table_tiers.h"
#include "hstu/predict/run_publisher.h"
#include "hstu/run/pruned.h"
#include "hstu/run/warm_start.h"
#include "hstu/training/catalogue_baselines.h"
#include "hstu/training/train.h"

namespace hstu {
namespace {

struct TrainWords {
  Path config, output, runs, warm_start, name_map;
  std::string resume;
  std::vector<std::string> set, allow_change, faults;
  std::vector<std::string> profiles;
  std::int64_t from_step = -1;
  int threads = 0;
  RankWords ranks;
};

// Replaces "auto", so that a run continues on the kind of device on which it began. Which GPU "cuda" is, each
// rank finds out by itself.
void settle_device(RunOptions& options) {
  const DeviceChoice choice = choose_device(options.device);
  if (options.device == "auto") options.device = choice.device.is_host() ? "host" : "cuda";
  print_note("device: {} ({})\n", options.device, choice.why);
}

// Replaces ranks.context = 0, so that a run continues with the same groups. `before`: what rank 0, or the run
// until now, has; 0: a plan chooses.
void settle_context(RunOptions& options, int before, int ranks) {
  if (options.ranks.context != 0) return;
  options.ranks.context = before;
  const PlannedDevice device = capped(planned_device(choose_device(options.device).device), options);
  const ChosenContext chosen = with_context(options, device, ranks);
  options = chosen.options;
  print_note("{}", chosen.why);
}

// Replaces places "auto" of tables, so that a run continues with its tables where they were.
void settle_places(RunOptions& options, int ranks) {
  options =
      with_places(options, capped(planned_device(choose_device(options.device).device), options), ranks);
}

// Makes paths absolute, so that the run can be continued and evaluated from any folder.
void settle_paths(RunOptions& options) {
  Path& publish = options.checkpoint.publish;
  for (Path* const path : {&options.data.path, &publish})
    if (!path->empty() && !is_object_url(path->string()))
      *path = std::filesystem::absolute(*path).lexically_normal();
  if (!options.store.credentials.empty())
    options.store.credentials = std::filesystem::absolute(options.store.credentials).lexically_normal();
  if (!publish.empty()) check_publication(publish, "checkpoint.publish", options.store);
}

void check_folder(const Path& dataset) {
  if (!std::filesystem::is_directory(dataset))
    fail_usage("data.path: {} is no folder: name a prepared dataset", dataset.string());
}

// Draws a seed that the configuration leaves open, of 53 bits, which every reader of the run's files keeps.
void settle_seed(RunOptions& options) {
  if (options.seed != kRandomNumber) return;
  std::random_device random;
  options.seed = (std::uint64_t{random()} << 32 | random()) >> 11;
  print_note("seed: {}\n", options.seed);
}

// Random rows that nothing changes are nobody's wish.
void check_frozen(const RunOptions& options) {
  for (const auto& [name, table] : options.tables.by_name)
    if (table.frozen && options.warm_start.checkpoint.empty())
      fail_usage(
          "tables.{0}.frozen = true: without rows to begin with it would keep its initial values for ever: "
          "name a checkpoint or imported rows by --warm-start, or set frozen = false",
          name);
}

RunOptions resume_options(const TrainWords& words, const RunFolder& folder, int ranks) {
  const bool own = words.config.empty();
  auto options = load_config<RunOptions>(own ? folder.config() : find_config(words.config), words.set,
                                         own ? UnreadKeys::taken : UnreadKeys::refused);
  check_consistency(options);
  if (options.mlperf) check_submission(options, ranks);
  const RunOptions before = read_run_options(folder);
  if (options.seed == kRandomNumber) options.seed = before.seed;
  // An older run may hold a relative path, which must not look like a change.
  if (options.data.path != before.data.path || options.checkpoint.publish != before.checkpoint.publish ||
      options.store.credentials != before.store.credentials)
    settle_paths(options);
  if (&options.model.kind() == &before.model.kind())
    options.model.options().continue_from(before.model.options());
  settle_device(options);
  settle_context(options, before.ranks.context, ranks);
  settle_places(options, ranks);
  return options;
}

// `context`: the number that rank 0 has chosen for ranks.context = 0; 0: this is rank 0.
RunOptions new_options(const TrainWords& words, int ranks, int context = 0) {
  auto options = load_config<RunOptions>(find_config(words.config), words.set);
  WarmStartSection& start = options.warm_start;
  if (!words.warm_start.empty()) start.checkpoint = warm_start_checkpoint(words.warm_start);
  if (!words.name_map.empty()) start.name_map = std::filesystem::absolute(words.name_map);
  check_consistency(options);
  check_frozen(options);
  settle_paths(options);
  options.model.options().settle();
  // A wrong path must not leave an empty run behind. MLPerf: no file of a dataset is opened before the clock
  // starts.
  if (options.mlperf) {
    check_submission(options, ranks);
    check_folder(options.data.path);
  } else {
    read_manifest(options.data.path);
  }
  settle_device(options);
  settle_context(options, context, ranks);
  settle_places(options, ranks);
  return options;
}

TrainRequest resume_request(const TrainWords& words, int ranks) {
  if (!words.output.empty()) fail_usage("--resume continues a run in its own folder: leave out --output");
  if (words.resume != "latest" && !words.runs.empty())
    fail_usage("--runs says where --resume latest looks: leave it out, or write --resume latest");
  if (!words.warm_start.empty() || !words.name_map.empty())
    fail_usage("--warm-start begins a new run: leave out --resume, or --warm-start and --name-map");
  TrainRequest request;
  request.resume = true;
  request.from_step = words.from_step;
  request.allowed_changes = words.allow_change;
  // They only say when a run ends or speaks, where the data are, which have an id, and where exports go.
  request.allowed_changes.insert(
      request.allowed_changes.end(),
      {"training.max_steps", "training.epochs", "training.silence_seconds", "evaluation.target_auc",
       "evaluation.patience", "checkpoint.final", "checkpoint.publish", "store.endpoint", "store.region",
       "store.credentials", "store.profile", "store.part_bytes", "data.path"});
  request.folder = words.resume == "latest" ? latest_run(words.runs.empty() ? Path(".") : words.runs)
                                            : open_run_folder(words.resume);
  request.options = resume_options(words, request.folder, ranks);
  return request;
}

TrainRequest new_request(const TrainWords& words, int ranks) {
  if (words.config.empty() || words.output.empty())
    fail_usage("hstu train needs CONFIG and --output RUN (or --resume RUN); see hstu train --help");
  if (words.from_step >= 0 || !words.allow_change.empty() || !words.runs.empty())
    fail_usage("--from-step, --allow-change and --runs go with --resume");
  TrainRequest request;
  request.options = new_options(words, ranks);
  settle_seed(request.options);
  request.folder = create_run_folder(words.output, request.options);
  return request;
}

// The request of a rank other than 0, which makes the folder of the run or chooses it.
TrainRequest follower_request(const TrainWords& words, const Path& folder, int ranks) {
  TrainRequest request;
  request.resume = !words.resume.empty();
  request.folder = open_run_folder(folder);
  const RunOptions chosen = read_run_options(request.folder);  // what rank 0 has chosen
  request.options = request.resume ? resume_options(words, request.folder, ranks)
                                   : new_options(words, ranks, chosen.ranks.context);
  if (request.options.seed == kRandomNumber) request.options.seed = chosen.seed;
  if (!request.resume) request.options.warm_start.checkpoint = chosen.warm_start.checkpoint;
  return request;
}

TrainRequest request_of(const TrainWords& words, Communicator& comm, const std::atomic<bool>& stop) {
  std::vector<ProfileSteps> profiles;
  for (const std::string& word : words.profiles) profiles.push_back(parse_profile(word));
  TrainRequest request;
  const int ranks = comm.size();
  if (comm.rank() == 0)
    request = words.resume.empty() ? new_request(words, ranks) : resume_request(words, ranks);
  const Path folder = text_of_rank_0(request.folder.path, comm);
  if (comm.rank() > 0) request = follower_request(words, folder, ranks);
  comm.set_patience(patience_of(request.options.ranks));
  request.version = version();
  request.stop = &stop;
  request.profiles = profiles;
  return request;
}

std::string cell(const std::optional<double>& value) {
  return value ? fmt::format("{:.4f}", *value) : std::string("undefined");
}

// The values of the metrics in tables, behind the name of what they are of.
std::vector<std::string> row_of(const std::string& name, const Measures& measures, MetricSpecs metrics) {
  std::vector<std::string> row{name};
  for (const MetricSpec& metric : metrics)
    if (metric.in_tables) row.push_back(cell(measures.find(metric.name)));
  return row;
}

// Baselines by name, if they have all metrics of the table; else the one of all kinds.
void add_baselines(const EvaluationResult& result, MetricSpecs metrics,
                   std::vector<std::vector<std::string>>& rows) {
  const auto has_all = [&](const auto& baseline) {
    return std::ranges::all_of(metrics, [&](const MetricSpec& metric) {
      return !metric.in_tables || baseline.second.find(metric.name);
    });
  };
  const bool by_name = !result.item_baselines.empty() && std::ranges::all_of(result.item_baselines, has_all);
  if (by_name) {
    for (const auto& [name, measures] : result.item_baselines)
      rows.push_back(row_of(name, measures, metrics));
  } else if (!result.baseline.empty()) {
    rows.push_back(row_of("baseline", result.baseline, metrics));
  }
}

void print_evaluation(const EvaluationResult& result, MetricSpecs metrics) {
  std::vector<std::vector<std::string>> rows{{"evaluation"}, row_of("model", result.model, metrics)};
  for (const MetricSpec& metric : metrics)
    if (metric.in_tables) rows[0].emplace_back(metric.title);
  add_baselines(result, metrics, rows);
  fmt::print("{}", table(rows));
  std::vector<std::string> counts;
  for (const auto& [name, value] : result.model.all()) {
    const MetricSpec* const metric = find_metric(metrics, name);
    const auto* const count = std::get_if<std::int64_t>(&value);
    if (metric != nullptr && count != nullptr)
      counts.push_back(fmt::format("{} {}", with_separators(*count), metric->title));
  }
  fmt::print("{}\n", fmt::join(counts, ", "));
  for (const auto& [name, value] : result.lists.all()) {
    std::string line = fmt::format("{} {}", name, cell(result.lists.find(name)));
    for (const auto& [baseline, measures] : result.item_baselines)
      line += fmt::format(", {} {}", baseline, cell(measures.find(name)));
    fmt::print("{}\n", line);
  }
  std::map<std::string, std::vector<std::string>> metrics_by_reason;
  for (const auto& [metric, why] : result.undefined) metrics_by_reason[why].push_back(metric);
  for (const auto& [why, undefined] : metrics_by_reason)
    fmt::print("undefined {}: {}\n", fmt::join(undefined, ", "), why);
  for (const std::string& note : notes_on_ranks(result)) fmt::print("{}\n", note);
  if (const std::string better = better_baselines(result, metrics); !better.empty())
    fmt::print("{}\n", better);
}

void print_result(const TrainResult& result) {
  fmt::print("{} after {} steps, {} samples ({:.0f} samples/s)\n", result.reason, result.steps,
             with_separators(result.samples), result.samples_per_s);
  if (result.reason == "patience") {
    fmt::print("stopped by patience: {} evaluations without an improvement of {}\n", result.best.stale,
               result.best.metric);
  }
  if (result.evaluation) print_evaluation(*result.evaluation, result.metrics);
  if (result.best.step >= 0) {
    fmt::print("best {}: {:.4f} at step {}, kept as checkpoints/best\n", result.best.metric,
               result.best.value.value_or(0), result.best.step);
  } else if (!result.best.metric.empty()) {
    fmt::print("no best checkpoint: no evaluation defined {}\n", result.best.metric);
  }
  print_note("{}", result.warning);
}

void train_once(const TrainWords& words, Communicator& comm, int ranks_here, const std::atomic<bool>& stop) {
  TrainRequest request = request_of(words, comm, stop);
  request.ranks_here = ranks_here;
  if (comm.rank() > 0) return follow(request, comm);
  std::optional<RunPublisher> publisher;
  if (const Path& to = request.options.checkpoint.publish; !to.empty())
    publisher.emplace(PublishOptions{.run = request.folder.path, .to = to, .store = request.options.store});
  const TrainResult result = train(request, comm);
  publisher.reset();
  print_result(result);
  const bool has_rules = request.options.submission.rules != SubmissionRules::stand_in;
  if (request.options.mlperf && has_rules) fmt::print("{}", report_on(request.folder.mlperf()).text);
  if (result.reason != "interrupted") return;
  fmt::print("continue with: hstu train --resume {}\n", request.folder.path.string());
  std::fflush(stdout);
  throw ExitStatus{kInterrupted};
}

// A run that trains on may prune the checkpoint that a warm start takes, until it is taken. Several ranks
// cannot begin again when one of them has failed.
void train_as_rank(const TrainWords& words, Communicator& comm, int ranks_here,
                   const std::atomic<bool>& stop) {
  const Path name = words.warm_start.filename();
  const bool linked = name == kBestLink || name == kCurrentLink;  // RUN/checkpoints/best
  const RunFolder source{linked ? words.warm_start.parent_path().parent_path() : words.warm_start};
  if (words.warm_start.empty() || comm.size() > 1 || !std::filesystem::exists(source.config()))
    return train_once(words, comm, ranks_here, stop);
  read_checkpoint(
      source.checkpoints(), name == kBestLink ? kBestLink : "",
      [&](const Path& checkpoint) {
        TrainWords chosen = words;
        chosen.warm_start = checkpoint;
        train_once(chosen, comm, ranks_here, stop);
      },
      [&] { return !std::filesystem::exists(words.output); });
}

}  // namespace

void add_train_command(CLI::App& app) {
  auto words = std::make_shared<TrainWords>();
  CLI::App* const command = app.add_subcommand("train", "Train a model as a configuration says");
  command->add_option("CONFIG", words->config,
                      "a TOML file, or the name of an installed one; hstu config lists every key");
  command->add_option("--set", words->set, "section.key=value, on top of the file; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--output", words->output, "folder of the run, made by this command");
  command->add_option("--resume", words->resume,
                      "continue this run from its newest checkpoint; \"latest\": from the one written last");
  command->add_option("--runs", words->runs, "the folder in which --resume latest looks; default: this one");
  command
      ->add_option("--from-step", words->from_step,
                   "with --resume: go back to the checkpoint of this step; later ones are put aside")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 50));
  command
      ->add_option("--allow-change", words->allow_change,
                   "with --resume: keys, separated by commas, that may differ from the run's configuration")
      ->delimiter(',');
  command->add_option("--warm-start", words->warm_start,
                      "begin with the parameters and table rows of this run or checkpoint");
  command->add_option("--name-map", words->name_map,
                      "with --warm-start: a TOML file, [parameters] and [tables], this model's name = \"the "
                      "other's\"");
  command
      ->add_option(
          "--profile", words->profiles,
          "steps=FIRST:LAST[,warmup=N]: write the times of these steps to RUN/trace_FIRST_LAST.json, for "
          "ui.perfetto.dev; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--threads", words->threads, "0: all cores")->check(CLI::Range(0, kMostThreads));
  add_rank_options(*command, words->ranks);
  command->add_option("--fault", words->faults)->allow_extra_args(false)->group("");  // docs/runs.md
  command->footer(
      "RUN holds config.toml (resolved), metrics.jsonl, checkpoints/ and summary.json. Ctrl-C or SIGTERM "
      "finishes\n"
      "the step and saves; a second one ends at once. Whatever ended a run, --resume continues as if it had "
      "not\n"
      "stopped. A new run that fails before its first step leaves no folder. Exit status: 0 done, 1 failed, "
      "2 refused before anything was changed, 75 interrupted and "
      "saved.\n"
      "Examples:\n"
      "  hstu train configs/movielens-100k.toml --set data.path=dataset --set seed=2 --output run\n"
      "  hstu train configs/quickstart.toml --set data.path=dataset --warm-start run --output run2\n"
      "  hstu train configs/quickstart.toml --set data.path=dataset --output run --profile steps=50:55\n"
      "  hstu train configs/quickstart.toml --set data.path=dataset --output run --ranks 4\n"
      "  hstu train --resume run\n"
      "  hstu train --resume latest --set training.epochs=3");
  command->callback([words] {
    if (!words->faults.empty()) watch_fault_points(parse_faults(words->faults));
    const JoinedRanks group =
        enter_group(words->ranks, words->output.empty() ? words->runs / words->resume : words->output);
    // Not before: a signal ends a rank that waits for others, which has nothing to save.
    const std::atomic<bool>& stop = watch_stop_signals();
    use_threads(threads_of_rank(words->threads, group));
    as_rank(group, [&] {
      train_as_rank(*words, group.comm ? *group.comm : one_rank(), group.on_this_machine, stop);
    });
  });
}

}  // namespace hstu
