#include "hstu/cli/commands.h"
#include "hstu/run/model_options.h"
#include "hstu/run/options.h"

namespace hstu {
namespace {

// The reference page describes the defaults, and with them the keys of the default kind of model.
struct OtherModel {
  RankingGrConfig model;
};

void describe(ConfigFields& f, OtherModel& o) {
  f.section("model", o.model, "with kind = \"ranking_gr\"");
}

}  // namespace

void add_config_command(CLI::App& app) {
  CLI::App* const command =
      app.add_subcommand("config", "List every configuration key with its default and meaning");
  command->footer("Example:\n  hstu config | less");
  command->callback(
      [] { fmt::print("{}\n{}", config_reference<RunOptions>(), config_reference<OtherModel>()); });
}

}  // namespace hstu
