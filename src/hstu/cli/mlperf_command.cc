#include <memory>
#include <string>
#include <vector>

#include "hstu/base/standard_output.h"
#include "hstu/cli/commands.h"
#include "hstu/mlperf/check.h"
#include "hstu/mlperf/pack.h"
#include "hstu/mlperf/system_description.h"
#include "hstu/mlperf/verdict_text.h"

namespace hstu {
namespace {

void add_check(CLI::App& mlperf) {
  struct Words {
    std::vector<Path> logs;
  };
  auto words = std::make_shared<Words>();
  CLI::App* const command = mlperf.add_subcommand("check", "Check logs by the rules of MLPerf Training 6.1");
  command->add_option("LOG", words->logs, "result_N.txt; ten of them are checked as a submission, too")
      ->required();
  command->footer(
      "Prints a verdict for each log, and where its convergence is beside the reference's. Exit status: 0 if "
      "every\n"
      "log complies, 1 if one does not. Example:\n  hstu mlperf check run/mlperf/result_0.txt");
  command->callback([words] {
    bool complies = true;
    for (const Path& log : words->logs) {
      const LogReport report = report_on(log);
      print_text("{}", report.text);
      complies = complies && report.complies;
    }
    if (words->logs.size() == kRunsOfPackage) {
      const bool closed = logged_run(read_mllog(words->logs.front())).division != "open";
      const PackageVerdict verdict = check_package_logs(words->logs, closed);
      print_text("{}", text_of(verdict));
      complies = complies && verdict.passes();
    }
    if (!complies) throw ExitStatus{1};
  });
}

void add_pack(CLI::App& mlperf) {
  auto words = std::make_shared<PackWords>();
  words->status = kSystemStatuses[0];
  CLI::App* const command =
      mlperf.add_subcommand("pack", "Make the folder of a submission from the logs of ten runs");
  command->add_option("RUN", words->runs, "folders of runs with mlperf = true")->required();
  command->add_option("--output", words->output, "the organization's folder, made by this command")
      ->required();
  command->add_option("--status", words->status, "of the system")
      ->check(
          CLI::IsMember(std::vector<std::string>(std::begin(kSystemStatuses), std::end(kSystemStatuses))));
  command->add_option("--nodes", words->nodes, "machines like this one that a run used")
      ->check(CLI::Range(1, 100000));
  command->footer(
      "Run it on a machine of the system: systems/PLATFORM.json describes the machine that it sees. Exit "
      "status 1: the\n"
      "folder is written, but would not pass the official package checker.\n"
      "Example:\n  hstu mlperf pack runs/* --output submission/hstu");
  command->callback([words] {
    const Package package = pack(*words);
    print_text("{}{} is written\n", text_of(package.verdict), words->output.string());
    if (!package.unseen.empty())
      print_text("fill in what a program cannot see, in {}: {}\n", package.system.string(),
                 fmt::join(package.unseen, ", "));
    if (!package.verdict.passes()) throw ExitStatus{1};
  });
}

}  // namespace

void add_mlperf_command(CLI::App& app) {
  CLI::App* const mlperf =
      app.add_subcommand("mlperf", "Check logs for MLPerf Training and make the folder of a submission");
  mlperf->require_subcommand(1);
  add_check(*mlperf);
  add_pack(*mlperf);
}

}  // namespace hstu
