#include "hstu/cli/commands.h"
#include "hstu/run/options.h"

namespace hstu {

void add_config_command(CLI::App& app) {
  CLI::App* const command =
      app.add_subcommand("config", "List every configuration key with its default and meaning");
  command->footer("Example:\n  hstu config | less");
  command->callback([] { fmt::print("{}", config_reference<RunOptions>()); });
}

}  // namespace hstu
