#include <atomic>
#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "hstu/base/text.h"
#include "hstu/base/version.h"
#include "hstu/cli/commands.h"
#include "hstu/training/train.h"

namespace hstu {
namespace {

std::atomic<bool> stop_requested = false;
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may only touch lock-free atomics");

// The first signal finishes the step and saves; a second one ends at once.
void request_stop(int signal) {
  if (stop_requested.exchange(true)) std::signal(signal, SIG_DFL);
}

struct TrainWords {
  Path config, output, resume;
  std::vector<std::string> set;
  int threads = 0;
};

TrainRequest request_of(const TrainWords& words) {
  TrainRequest request;
  request.version = version();
  request.stop = &stop_requested;
  if (!words.resume.empty()) {
    if (!words.config.empty() || !words.output.empty()) {
      fail_usage("--resume goes on with a run under its own configuration: leave out CONFIG and --output");
    }
    request.resume = true;
    request.folder = open_run_folder(words.resume);
    request.options = load_config<RunOptions>(request.folder.config(), words.set);
    return request;
  }
  if (words.config.empty() || words.output.empty()) {
    fail_usage("hstu train needs CONFIG and --output RUN (or --resume RUN); see hstu train --help");
  }
  request.options = load_config<RunOptions>(words.config, words.set);
  check_consistency(request.options);
  read_manifest(request.options.data.path);  // a wrong path must not leave an empty run behind
  request.folder = create_run_folder(words.output, request.options);
  return request;
}

void print_result(const TrainResult& result, const RunFolder& folder) {
  fmt::print("{} after {} steps, {} samples ({:.0f} samples/s)\n", result.reason, result.steps,
             with_separators(result.samples), result.samples_per_s);
  if (result.evaluation) {
    const auto cell = [](const std::optional<double>& value) {
      return value ? fmt::format("{:.4f}", *value) : std::string("undefined");
    };
    const RankingMetrics &model = result.evaluation->model, &baseline = result.evaluation->baseline;
    fmt::print("{}",
               table({{"evaluation", "AUC", "NE", "accuracy", "GAUC"},
                      {"model", cell(model.auc), cell(model.ne), cell(model.accuracy), cell(model.gauc)},
                      {"baseline", cell(baseline.auc), cell(baseline.ne), cell(baseline.accuracy),
                       cell(baseline.gauc)}}));
    fmt::print("{} samples, {} positive, {} users with both\n", with_separators(model.n),
               with_separators(model.n_pos), with_separators(model.n_groups));
  }
  if (result.reason == "interrupted") {
    fmt::print("saved; go on with: hstu train --resume {}\n", folder.path.string());
  }
}

}  // namespace

void add_train_command(CLI::App& app) {
  auto words = std::make_shared<TrainWords>();
  CLI::App* const command = app.add_subcommand("train", "Train a model as a configuration says");
  command->add_option("CONFIG", words->config, "a TOML file; hstu config lists every key");
  command->add_option("--set", words->set, "section.key=value, on top of the file; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--output", words->output, "folder of the run, made by this command");
  command->add_option("--resume", words->resume, "go on with an earlier run from its newest checkpoint");
  command->add_option("--threads", words->threads, "0: all cores")->check(CLI::NonNegativeNumber);
  command->footer(
      "RUN holds config.toml (resolved), metrics.jsonl, checkpoints/ and summary.json. Ctrl-C finishes the "
      "step and\n"
      "saves.\n"
      "Example:\n"
      "  hstu train configs/movielens-100k.toml --set data.path=dataset --set seed=2 --output run");
  command->callback([words] {
    use_threads(words->threads);
    const TrainRequest request = request_of(*words);
    std::signal(SIGINT, request_stop);
    std::signal(SIGTERM, request_stop);
    print_result(train(request), request.folder);
  });
}

}  // namespace hstu
