#include <memory>

#include <fmt/format.h>

#include "hstu/base/error.h"
#include "hstu/cli/commands.h"
#include "hstu/predict/export.h"
#include "hstu/predict/export_vectors.h"
#include "hstu/run/table_files.h"

namespace hstu {
namespace {

CLI::App* add_tables_command(CLI::App& of_export) {
  auto options = std::make_shared<TableExportOptions>();
  CLI::App* const command =
      of_export.add_subcommand("tables", "Write rows of tables, all or those that changed");
  command->add_option("RUN", options->run, "folder of the run")->required();
  command->add_option("--output", options->output, "new folder")->required()->type_name("DIR");
  command
      ->add_option(
          "--since", options->since,
          "only rows that were changed, created or removed since the checkpoint of this step, or since "
          "the one in this folder, of another run that this one goes on with")
      ->type_name("STEP|DIR");
  command->add_option("--checkpoint", options->checkpoint, "of this step, or best; default: the newest");
  command->footer(
      "The folder has a file of safetensors for each table (ids, rows, and with --since the ids that are\n"
      "gone), and a manifest that says which checkpoint it is of and which one it follows. hstu import "
      "joins\n"
      "them. Prints one JSON object. docs/tables.md describes the files.\n"
      "Examples:\n"
      "  hstu export tables run --output full\n"
      "  hstu export tables run --since 20000 --output changes\n"
      "  hstu export tables run2 --since run/checkpoints/step_00030000 --output changes2");
  command->callback([options] { fmt::print("{}\n", export_tables(*options).dump(2)); });
  return command;
}

}  // namespace

void add_export_command(CLI::App& app) {
  auto options = std::make_shared<ExportOptions>();
  auto vectors = std::make_shared<Path>();
  CLI::App* const command = app.add_subcommand("export", "Write what scoring needs of a run into one folder");
  command->add_option("RUN", options->run, "folder of the run");
  command->add_option("--output", options->output, "new folder")->type_name("DIR");
  command
      ->add_option("--vectors", *vectors,
                   "write the vectors of items and users of a retrieval model, for an index, instead")
      ->type_name("DIR");
  command->add_option("--checkpoint", options->checkpoint, "of this step, or best; default: the newest");
  command->add_option("--data", options->data, "the run's dataset, when it has moved")->type_name("DIR");
  command->footer(
      "The folder has the parameters and table rows as safetensors, the configuration and the item\n"
      "attributes; no optimizer and no events. hstu predict reads it without the run, its dataset or this\n"
      "machine, and so does examples/score_numpy.py. docs/predict.md describes the files.\n"
      "With --vectors it has items.f32.npy, ids.i64.npy, users.f32.npy, user_ids.i64.npy, the same as "
      "Parquet,\n"
      "and manifest.json: a score is the product of two vectors, and hstu ann-recall judges an index.\n"
      "Prints one JSON object.\n"
      "Examples:\n  hstu export run --output exported\n  hstu export run --vectors vectors");
  CLI::App* const tables = add_tables_command(*command);
  command->callback([options, tables, vectors] {
    if (tables->parsed()) return;
    if (options->run.empty()) fail_usage("RUN is required");
    if (!vectors->empty() && !options->output.empty())
      fail_usage("--output and --vectors write different folders: leave one of them out");
    if (options->output.empty() && vectors->empty()) fail_usage("--output or --vectors is required");
    if (!vectors->empty()) {
      options->output = *vectors;
      fmt::print("{}\n", export_vectors(*options).dump(2));
      return;
    }
    fmt::print("{}\n", export_model(*options).dump(2));
  });
}

}  // namespace hstu
