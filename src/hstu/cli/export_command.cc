#include <memory>

#include <fmt/format.h>

#include "hstu/cli/commands.h"
#include "hstu/predict/export.h"

namespace hstu {

void add_export_command(CLI::App& app) {
  auto options = std::make_shared<ExportOptions>();
  CLI::App* const command = app.add_subcommand("export", "Write what scoring needs of a run into one folder");
  command->add_option("RUN", options->run, "folder of the run")->required();
  command->add_option("--output", options->output, "new folder")->required()->type_name("DIR");
  command->add_option("--checkpoint", options->checkpoint, "of this step, or best; default: the newest");
  command->add_option("--data", options->data, "the run's dataset, when it has moved")->type_name("DIR");
  command->footer(
      "The folder has the parameters and table rows as safetensors, the configuration and the item\n"
      "attributes; no optimizer and no events. hstu predict reads it without the run, its dataset or this\n"
      "machine, and so does examples/score_numpy.py. docs/predict.md describes the files.\n"
      "Prints one JSON object.\n"
      "Example:\n  hstu export run --output exported");
  command->callback([options] { fmt::print("{}\n", export_model(*options).dump(2)); });
}

}  // namespace hstu
