#include <memory>

#include <fmt/format.h>

#include "hstu/arguments/size.h"
#include "hstu/base/json.h"
#include "hstu/cli/commands.h"
#include "hstu/cli/stop_signals.h"
#include "hstu/predict/publish.h"

namespace hstu {

void add_publish_command(CLI::App& app) {
  struct Words {
    PublishOptions options;
    double seconds = 0;
  };
  auto words = std::make_shared<Words>();
  PublishOptions& o = words->options;
  CLI::App* const command =
      app.add_subcommand("publish", "Export a run into a folder that hstu serve follows");
  command->add_option("RUN", o.run, "folder of the run")->required();
  command->add_option("--to", o.to, "folder of published exports")->required()->type_name("DIR");
  command->add_option("--checkpoint", o.checkpoint, "of this step, or best; default: the newest");
  command->add_option("--data", o.data, "the run's dataset, when it has moved")->type_name("DIR");
  command->add_option("--keep", o.keep, "exports; older ones are removed")
      ->check(at_least(1))
      ->capture_default_str();
  command
      ->add_option(
          "--full-every", o.full_every,
          "every so many exports have all rows; the others those that changed since the last such one")
      ->check(at_least(1))
      ->capture_default_str();
  command
      ->add_option("--follow", words->seconds,
                   "look for a newer checkpoint so often, until SIGTERM or SIGINT; default: publish once")
      ->check(CLI::Range(0.05, 86'400.0))
      ->type_name("SECONDS");
  command->footer(
      "Makes DIR/step_STEP and lets the link DIR/current name it. Prints one JSON line for each export.\n"
      "Example, while the run trains:\n"
      "  hstu publish run --to published --follow 60\n"
      "  hstu serve published/current --watch published");
  command->callback([words] {
    const auto print = [](const Path& path) {
      fmt::print("{}\n", Json{{"published", path.string()}}.dump());
      std::fflush(stdout);
    };
    if (words->seconds > 0) {
      follow_run(words->options, words->seconds, watch_stop_signals(), print);
    } else {
      print(publish(words->options));
    }
  });
}

}  // namespace hstu
