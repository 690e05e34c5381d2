#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "hstu/base/text.h"
#include "hstu/cli/commands.h"
#include "hstu/cli/run_series.h"
#include "hstu/comparison/evaluated_samples.h"
#include "hstu/comparison/sweep_summary.h"
#include "hstu/device/machine.h"

namespace hstu {
namespace {

std::vector<PlannedRun> planned(const std::vector<SweepRun>& runs) {
  return {runs.begin(), runs.end()};
}

// Returns the exit status.
int run_sweep(const SweepWords& words, int jobs, int threads) {
  std::vector<SweepRun> runs = plan_sweep(words);
  RunSeries series({.what = "sweep", .output = words.output, .jobs = jobs, .threads = threads},
                   planned(runs));
  const int status = series.train();
  std::vector<SweepResult> results;
  std::vector<ComparedRun> compared;
  std::vector<NamedRun> named;
  std::vector<SeriesResult> trained = series.results();
  for (std::size_t i = 0; i < runs.size(); ++i) {
    SeriesResult& of_run = trained[i];
    results.push_back({std::move(runs[i]), of_run.state, of_run.run ? of_run.run->outcome : RunOutcome{}});
    if (!of_run.run) continue;
    named.push_back(of_run.run->run);
    compared.push_back(std::move(*of_run.run));
  }
  fmt::print("{}", table(sweep_table(results)));
  const std::string note = note_on_samples(compared);
  if (!note.empty()) fmt::print("{}\n", note);
  write_file(words.output / "summary.jsonl", sweep_lines(results));
  if (named.empty()) return status;
  const Path page = words.output / "summary.html";
  write_page(page,
             comparison_html("sweep", comparison_table(compared), settings_table(compared), named, note));
  fmt::print("{}\n", page.string());
  return status;
}

}  // namespace

void add_sweep_command(CLI::App& app) {
  struct Words {
    SweepWords sweep;
    std::vector<std::string> vary;
    int jobs = 1, threads = 0;
  };
  auto words = std::make_shared<Words>();
  CLI::App* const command = app.add_subcommand(
      "sweep", "Train a configuration with several values and seeds, and compare the runs");
  command->add_option("CONFIG", words->sweep.config, "a TOML file")->required();
  command
      ->add_option("--vary", words->vary,
                   "section.key=value,value,...; several keys: every combination of their values")
      ->allow_extra_args(false);
  command
      ->add_option("--seeds", words->sweep.seeds,
                   "runs of each setting, with the seeds from the configuration's on")
      ->check(CLI::Range(1, 1000));
  command->add_option("--set", words->sweep.set, "section.key=value, of every run; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--jobs", words->jobs, "runs at a time")->check(CLI::Range(1, 1024));
  command->add_option("--threads", words->threads, "of all runs together, shared alike; 0: all cores")
      ->check(CLI::Range(0, kMostThreads));
  command->add_option("--output", words->sweep.output, "folder of the runs")->required();
  command->footer(
      "DIR holds one plain run for each setting and seed, what each printed in logs/, summary.jsonl and\n"
      "summary.html. The same command again resumes runs that were interrupted or failed, and skips those "
      "that\n"
      "have ended. Exit status: 0 all ended, 1 a run failed (the others continue), 75 interrupted and "
      "saved.\n"
      "Example:\n"
      "  hstu sweep config.toml --vary dense_optimizer.learning_rate=3e-4,1e-3 --vary model.layers=2,3 "
      "--seeds 3 \\\n"
      "    --jobs 2 --output sweep");
  command->callback([words] {
    for (const std::string& word : words->vary) words->sweep.vary.push_back(parse_variation(word));
    const int cores = words->threads > 0 ? words->threads : this_machine().usable_cores;
    const int status = run_sweep(words->sweep, words->jobs, std::max(1, cores / words->jobs));
    if (status != 0) throw ExitStatus{status};
  });
}

}  // namespace hstu
