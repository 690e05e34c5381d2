#include <memory>
#include <string>
#include <vector>

#include "hstu/base/child_processes.h"
#include "hstu/base/error.h"
#include "hstu/base/standard_output.h"
#include "hstu/base/terminal.h"
#include "hstu/base/text.h"
#include "hstu/cli/commands.h"
#include "hstu/cli/installed.h"
#include "hstu/cli/run_series.h"
#include "hstu/cli/slurm_jobs.h"
#include "hstu/comparison/suite_report.h"
#include "hstu/dataset/manifest.h"
#include "hstu/device/gpu_condition.h"
#include "hstu/device/machine.h"

namespace hstu {
namespace {

constexpr const char* kSuiteFile = "suite.toml";

struct SuiteCommandWords {
  Path file, output, reported;
  SuiteWords suite;
  std::vector<std::string> only;
  bool dry_run = false, slurm = false;
  SlurmWords jobs;
};

std::vector<std::string> split_words(const std::string& text) {
  std::vector<std::string> words = split(text, ' ');
  std::erase(words, "");
  return words;
}

// Of the suite's own data; "" if the experiments name their data.path.
Path dataset_of(const SuiteData& data, const Path& folder) {
  return data.generate.empty() ? Path()
                               : std::filesystem::absolute(folder / "data/dataset").lexically_normal();
}

// The two commands that make the suite's dataset in `folder`/data.
std::vector<std::vector<std::string>> data_commands(const SuiteData& data, const Path& folder) {
  const Path events = folder / "data/events";
  std::vector<std::string> generate = split_words("generate " + data.generate),
                           prepare = split_words("prepare " + data.prepare);
  if (prepare.size() > 1 && prepare[1] == "parquet")
    prepare.insert(prepare.end(), {"--schema", (events / "schema.toml").string()});
  generate.insert(generate.end(), {"--output", events.string()});
  prepare.insert(prepare.end(), {"--input", events.string(), "--output", dataset_of(data, folder).string()});
  return {generate, prepare};
}

// Makes the dataset, unless it is there or the suite has none.
void make_data(const SuiteData& data, const Path& folder) {
  if (data.generate.empty() || std::filesystem::exists(dataset_of(data, folder) / kManifestFile)) return;
  std::filesystem::create_directories(folder / "logs");
  std::filesystem::remove_all(folder / "data");  // of an interrupted command
  std::filesystem::create_directories(folder / "data");
  const Path log = folder / "logs/data.txt";
  for (const std::vector<std::string>& words : data_commands(data, folder)) {
    print_note("hstu {}\n", fmt::join(words, " "));
    int failure = 0;
    const std::vector<ChildCommand> command{{words, log}};
    if (!run_children(
            command, 1, [](std::size_t) {}, [&](std::size_t, int status) { failure = status; }) ||
        failure != 0)
      fail("hstu {} failed with status {}: {}", fmt::join(words, " "), failure, last_line(log));
  }
}

// The resolved suite is kept beside its runs, for the report and for the same command again.
void keep_suite(const Suite& suite, const Path& folder) {
  const Path file = folder / kSuiteFile;
  if (std::filesystem::exists(file)) {
    const auto before = load_config<Suite>(file);
    if (before.data.generate != suite.data.generate || before.data.prepare != suite.data.prepare)
      fail_usage("{} has the runs of other data ({}): choose another --output, or remove it", folder.string(),
                 before.data.generate);
  }
  std::filesystem::create_directories(folder);
  write_file(file, to_toml(suite));
}

void print_suite(const Suite& suite, const SuiteCommandWords& words) {
  const Path& output = words.output;
  if (!suite.data.generate.empty())
    for (const auto& command : data_commands(suite.data, output))
      print_text("hstu {}\n", fmt::join(command, " "));
  for (const PlannedRun& run : plan_suite(suite, dataset_of(suite.data, output), words.only)) {
    std::vector<std::string> command = train_words(run, output / run.name, suite.base.profile, false);
    if (run.ranks > 1) command.insert(command.end(), {"--ranks", std::to_string(run.ranks)});
    print_text("hstu {}\n", fmt::join(command, " "));
  }
}

void report_suite(const Path& folder) {
  const Path file = folder / kSuiteFile;
  if (!std::filesystem::exists(file))
    fail_usage("{} is not the --output of hstu suite: it has no {}", folder.string(), kSuiteFile);
  const auto suite = load_config<Suite>(file);
  const std::vector<SuiteFigures> figures = read_suite(suite, folder);
  for (const auto& [name, text] : suite_report(suite, figures)) {
    if (name.ends_with(".html"))
      write_page(folder / name, text);
    else
      write_file(folder / name, text);
  }
  if (const std::string scale = scale_text(suite); !scale.empty()) print_text("{}\n", scale);
  print_text("{}", table(suite_table(figures)));
  if (const auto published = published_table(suite, figures); published.size() > 1)
    print_text("\n{}", table(published));
  print_text("{}\n", (folder / "report.html").string());
}

// Each experiment that has not ended is a job; one before them makes the data.
int submit_suite(const Suite& suite, const SuiteCommandWords& words) {
  const Path folder = std::filesystem::absolute(words.output).lexically_normal();
  const Path dataset = dataset_of(suite.data, folder);
  std::vector<SlurmJob> jobs;
  if (!dataset.empty() && !std::filesystem::exists(dataset / kManifestFile))
    jobs.push_back({.name = "data", .commands = data_commands(suite.data, folder), .run = dataset});
  Suite copied = suite;
  copied.base.config = copy_for_jobs(folder, find_config(words.file), suite.base.config);
  for (const PlannedRun& run : plan_suite(copied, dataset, words.only)) {
    const Path at = folder / run.name;
    if (state_of(run, at) == RunProgress::ended) continue;
    if (run.ranks != words.suite.ranks)
      fail_usage("experiment {}: ranks = {}: jobs have --nodes x --gpus-per-node = {} ranks", run.name,
                 run.ranks, words.suite.ranks);
    jobs.push_back({.name = run.name,
                    .begin = train_words(run, at, suite.base.profile, false),
                    .resume = train_words(run, at, "", true),
                    .run = at});
  }
  submit_jobs(jobs, words.jobs, folder);
  if (words.jobs.wait) report_suite(folder);
  return 0;
}

// Adds a line to DIR/gpus.jsonl, and warns of GPUs that are not as others of their kind.
void note_gpus(const Path& folder, const char* when) {
  const Json line{{"when", when}, {"gpus", report_gpus()}};
  if (line.at("gpus").empty()) return;
  const Path file = folder / "gpus.jsonl";
  const std::string before = std::filesystem::exists(file) ? read_file(file) : "";
  write_file(file, before + line.dump() + "\n");
}

int run_here(const Suite& suite, const SuiteCommandWords& words) {
  make_data(suite.data, words.output);
  RunSeries series(
      {.what = "suite", .output = words.output, .jobs = 1, .threads = 0, .profile = suite.base.profile},
      plan_suite(suite, dataset_of(suite.data, words.output), words.only));
  note_gpus(words.output, "before");
  const int status = series.train();
  note_gpus(words.output, "after");
  report_suite(words.output);
  return status;
}

int run_suite(SuiteCommandWords words) {
  if (words.slurm) check_words(words.jobs, std::filesystem::absolute(words.output));
  if (words.slurm) words.suite.ranks = words.jobs.nodes * words.jobs.gpus_per_node;
  const auto gpus = static_cast<std::int64_t>(this_machine().nvidia.gpus.size());
  Suite suite = resolve_suite(find_config(words.file), words.suite, gpus);
  suite.base.config = find_config(suite.base.config);
  if (const std::string scale = scale_text(suite); !scale.empty()) print_note("{}\n", scale);
  if (words.dry_run) {
    print_suite(suite, words);
    return 0;
  }
  plan_suite(suite, dataset_of(suite.data, words.output),
             words.only);  // refuses wrong keys before anything is made
  keep_suite(suite, words.output);
  return words.slurm ? submit_suite(suite, words) : run_here(suite, words);
}

}  // namespace

void add_suite_command(CLI::App& app) {
  auto words = std::make_shared<SuiteCommandWords>();
  CLI::App* const command =
      app.add_subcommand("suite", "Train the experiments of a suite one after another, and compare them");
  command->add_option("FILE", words->file, "a TOML file, or the name of an installed one (suites/NAME.toml)");
  command->add_option("--output", words->output, "folder of the runs, the data and the report");
  command->add_option("--only", words->only, "this experiment; may be repeated")->allow_extra_args(false);
  command
      ->add_option("--ranks", words->suite.ranks,
                   "processes of each run; default: the suite's, or one for each GPU here")
      ->check(CLI::Range(1, 1024));
  command
      ->add_option("--scale", words->suite.scale,
                   "of the sizes that the suite scales; default: the suite's, or ranks over published GPUs")
      ->check(CLI::PositiveNumber);
  command->add_option("--set", words->suite.set, "section.key=value, of every experiment; may be repeated")
      ->allow_extra_args(false);
  command->add_flag("--dry-run", words->dry_run, "print the commands and run nothing");
  CLI::Option* const slurm = command->add_flag(
      "--slurm", words->slurm, "submit a SLURM job for each experiment, and one for the data");
  SlurmWords& jobs = words->jobs;
  const auto of_jobs = [&](CLI::Option* option) { option->needs(slurm); };
  of_jobs(command->add_option("--nodes", jobs.nodes, "of a job")->check(CLI::Range(1, 1 << 16)));
  of_jobs(command->add_option("--gpus-per-node", jobs.gpus_per_node, "of a job, and ranks: a rank has a GPU")
              ->check(CLI::Range(1, 64)));
  of_jobs(command->add_option("--partition", jobs.partition, "of the cluster"));
  of_jobs(command->add_option("--account", jobs.account, "of the cluster"));
  of_jobs(command->add_option("--time", jobs.time, "of a job, as sbatch takes it"));
  of_jobs(command->add_flag("--sequential", jobs.one_by_one, "a job begins when the one before has left"));
  of_jobs(command->add_flag("--wait", jobs.wait,
                            "wait until all jobs have left the queue, then write the report"));
  of_jobs(
      command->add_option("--poll", jobs.poll_seconds, "with --wait: seconds between two looks at the queue")
          ->check(CLI::Range(1, 3600)));
  of_jobs(command->add_option(
      "--host", jobs.host, "submit there by ssh; DIR has the same path there, as on a shared file system"));
  command->footer(
      "DIR holds one plain run for each experiment, what each printed in logs/, and report.md, report.csv "
      "and\n"
      "report.html with charts. The same command again skips the experiments that have ended and continues "
      "the\n"
      "others. Exit status: 0 all ended, 1 an experiment failed (the others continue), 75 interrupted and "
      "saved.\n"
      "Examples:\n"
      "  hstu suite configs/suites/nvidia-e2e.toml --output e2e\n"
      "  hstu suite configs/suites/nvidia-e2e.toml --output e2e --slurm --nodes 2 --wait\n"
      "  hstu suite report e2e");
  CLI::App* const of_report =
      command->add_subcommand("report", "Write the report of a suite, finished or not");
  of_report->add_option("DIR", words->reported, "the --output of hstu suite")->required();
  of_report->callback([words] { report_suite(words->reported); });
  command->callback([words, of_report] {
    if (of_report->parsed()) return;
    if (words->file.empty() || words->output.empty())
      fail_usage("hstu suite needs FILE and --output DIR; see hstu suite --help");
    const int status = run_suite(*words);
    if (status != 0) throw ExitStatus{status};
  });
}

}  // namespace hstu
