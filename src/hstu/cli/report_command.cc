#include <memory>

#include "hstu/base/json_lines.h"
#include "hstu/base/text.h"
#include "hstu/cli/commands.h"
#include "hstu/report/page.h"
#include "hstu/report/report.h"
#include "hstu/run/folder.h"

namespace hstu {

void add_report_command(CLI::App& app) {
  struct Words {
    Path run, output;
  };
  auto words = std::make_shared<Words>();
  CLI::App* const command = app.add_subcommand("report", "Write one HTML page about a run, finished or not");
  command->add_option("RUN", words->run, "the --output of hstu train")->required();
  command->add_option("--output", words->output, "the page (default: RUN/report.html)");
  command->footer(
      "The page needs no network and contains no script: it can be mailed, archived or opened from a share.\n"
      "Example:\n  hstu report run");
  command->callback([words] {
    const RunFolder folder = open_run_folder(words->run);
    if (!std::filesystem::exists(folder.metrics())) {
      fail_usage("{} has no metrics.jsonl yet: the run has not started", words->run.string());
    }
    const Path output = words->output.empty() ? words->run / "report.html" : words->output;
    const RunOptions options = read_run_options(folder);
    const NegativeOptions& negatives = options.evaluation.negatives;
    const ReportSource source{
        .title = std::filesystem::absolute(words->run).lexically_normal().filename().string(),
        .metrics = RunMetrics(read_json_lines(folder.metrics()), folder.metrics().string()),
        .specs = options.model.metrics(),
        .config = read_file(folder.config()),
        .draws_negatives = negatives.per_positive > 0 && negatives.from != NegativeSource::all,
        .best = options.checkpoint.best};
    write_page(output, report_html(source));
    fmt::print("{}\n", output.string());
  });
}

}  // namespace hstu
