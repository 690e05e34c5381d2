#include <memory>

#include "hstu/base/terminal.h"
#include "hstu/cli/commands.h"
#include "hstu/config/config_template.h"
#include "hstu/options/model_options.h"
#include "hstu/options/options.h"
#include "hstu/starting/starting_config.h"

namespace hstu {
namespace {

// The reference page describes the defaults, and with them the keys of the default kind of model.
struct OtherModel {
  RankingGrConfig model;
};

void describe(ConfigFields& f, OtherModel& o) {
  f.section("model", o.model, "with kind = \"ranking_gr\"");
}

std::string full_template() {
  RunOptions options;
  options.data.path = "dataset";
  return toml_comment(
             "Every key of a run. A key behind # has the value that it has without the line. The keys of "
             "[model] are those of kind = \"dlrmv4\"; hstu config lists the others.") +
         "\n" + config_template(options);
}

std::string template_for(const Path& dataset) {
  const DatasetProfile profile = profile_dataset(dataset);
  const EventCounts& counts = profile.manifest.counts;
  if (counts.positives == 0 || counts.positives == counts.rankable) {
    tell("WARNING: {} of {} events to rank are positive: a model can learn nothing from one class\n",
         counts.positives, counts.rankable);
  }
  return starting_config(profile);
}

}  // namespace

void add_config_command(CLI::App& app) {
  struct Words {
    bool wants_template = false;
    Path dataset;
  };
  auto words = std::make_shared<Words>();
  CLI::App* const command =
      app.add_subcommand("config", "List every configuration key, or write a configuration to start from");
  CLI::Option* const wanted =
      command->add_flag("--template", words->wants_template, "print a TOML file with every key as a comment");
  command
      ->add_option("--for", words->dataset,
                   "with --template: print a configuration that trains this dataset, with its reasons")
      ->needs(wanted);
  command->footer(
      "Without --template, prints tables of all keys with their defaults and meanings.\n"
      "Examples:\n  hstu config | less\n"
      "  hstu config --template --for dataset > config.toml\n"
      "  hstu train config.toml --output run");
  command->callback([words] {
    if (!words->wants_template) {
      fmt::print("{}\n{}", config_reference<RunOptions>(), config_reference<OtherModel>());
    } else {
      fmt::print("{}", words->dataset.empty() ? full_template() : template_for(words->dataset));
    }
  });
}

}  // namespace hstu
