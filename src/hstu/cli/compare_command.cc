#include <memory>
#include <string>
#include <vector>

#include "hstu/base/error.h"
#include "hstu/base/terminal.h"
#include "hstu/base/text.h"
#include "hstu/cli/commands.h"
#include "hstu/comparison/evaluated_samples.h"
#include "hstu/comparison/run_outcome.h"

namespace hstu {
namespace {

void refuse_twice(const std::vector<Path>& runs) {
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      std::error_code ignored;  // one that does not exist is refused when it is read
      if (std::filesystem::equivalent(runs[i], runs[j], ignored))
        fail_usage("{} and {} are the same run: name it once", runs[j].string(), runs[i].string());
    }
  }
}

// A folder's name, or its whole path where two runs have the same.
std::vector<std::string> names_of(const std::vector<Path>& paths) {
  std::vector<std::string> names, whole;
  names.reserve(paths.size());
  whole.reserve(paths.size());
  for (const Path& path : paths) {
    whole.push_back(std::filesystem::absolute(path / "").lexically_normal().parent_path().string());
    names.push_back(Path(whole.back()).filename().string());
  }
  std::vector<std::string> chosen = names;
  for (std::size_t i = 0; i < names.size(); ++i) {
    for (std::size_t j = 0; j < names.size(); ++j)
      if (i != j && names[i] == names[j]) chosen[i] = whole[i];
  }
  return chosen;
}

}  // namespace

void add_compare_command(CLI::App& app) {
  struct Words {
    std::vector<Path> runs;
    Path output;
    bool json = false;
  };
  auto words = std::make_shared<Words>();
  CLI::App* const command =
      app.add_subcommand("compare", "Compare runs: what differs in their configurations, and their results");
  command->add_option("RUN", words->runs, "folders of runs, finished or not")->required();
  command->add_option("--output", words->output, "write one HTML page with the curves of all runs, too");
  command->add_flag("--json", words->json, "print one JSON object for each run");
  command->footer(
      "\"best\" is the best of a run's evaluations by its checkpoint.best, or by the kind's first metric; "
      "the other metrics are "
      "those\nof its last evaluation.\n"
      "Examples:\n  hstu compare run run2\n  hstu compare sweep/* --output sweep.html");
  command->callback([words] {
    std::vector<ComparedRun> runs;
    runs.reserve(words->runs.size());
    refuse_twice(words->runs);
    const std::vector<std::string> names = names_of(words->runs);
    for (std::size_t i = 0; i < names.size(); ++i) runs.push_back(read_run(words->runs[i], names[i]));
    std::vector<std::string> of_kinds;
    const std::vector<Cells> rows = comparison_table(runs), settings = settings_table(runs, &of_kinds);
    const std::string note = note_on_samples(runs);
    if (!words->output.empty()) {
      std::vector<NamedRun> named;
      named.reserve(runs.size());
      for (const ComparedRun& run : runs) named.push_back(run.run);
      write_page(words->output,
                 comparison_html(fmt::format("{} runs", runs.size()), rows, settings, named, note));
    }
    if (!words->json) {
      fmt::print("{}", table(rows));
      if (!note.empty()) fmt::print("{}\n", note);
      if (settings.size() > 1) fmt::print("\nconfiguration, where it differs:\n{}", table(settings));
      if (!of_kinds.empty()) fmt::print("{}\n", note_on_keys(of_kinds));
      return;
    }
    if (!note.empty()) print_note("{}\n", note);
    for (const ComparedRun& run : runs) {
      Json line{{"run", run.run.name}};
      line.update(to_json(run.outcome));
      fmt::print("{}\n", line.dump());
    }
  });
}

}  // namespace hstu
