#include <memory>

#include <fmt/format.h>

#include "hstu/arguments/size.h"
#include "hstu/arguments/store.h"
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
      app.add_subcommand("publish", "Export a run into a folder or an object store that hstu serve follows");
  command->add_option("RUN", o.run, "folder of the run")->required();
  command->add_option("--to", o.to, "folder of published exports, or s3://BUCKET/FOLDER")
      ->required()
      ->type_name("DIR");
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
  command
      ->add_option("--beside", o.beside,
                   "of s3://: folder in which the same is published at first; default: RUN/published")
      ->type_name("DIR");
  add_store_options(*command, o.store);
  add_store_part(*command, o.store);
  command->footer(
      "Makes DIR/step_STEP and lets the link DIR/current name it. Prints one JSON line for each export.\n"
      "Example, while the run trains:\n"
      "  hstu publish run --to published --follow 60\n"
      "  hstu serve published/current --watch published\n"
      "and by a store:\n"
      "  hstu publish run --to s3://models/shop --s3-credentials keys --follow 60\n"
      "  hstu serve s3://models/shop --watch s3://models/shop --beside served --s3-credentials keys");
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
