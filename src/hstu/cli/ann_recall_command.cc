#include <memory>

#include <fmt/format.h>

#include "hstu/cli/commands.h"
#include "hstu/predict/ann_recall.h"

namespace hstu {

void add_ann_recall_command(CLI::App& app) {
  auto options = std::make_shared<AnnRecallOptions>();
  CLI::App* const command =
      app.add_subcommand("ann-recall", "Say how much of the exact lists an approximate index finds");
  command->add_option("ANSWERS", options->answers, "table of the index's answers")
      ->required()
      ->type_name("FILE");
  command->add_option("--against", options->exact, "table that hstu predict --top wrote")
      ->required()
      ->type_name("FILE");
  command
      ->add_option("--k", options->cutoffs,
                   "compare the first K of each list; default: 1, 10 and 100 as far as the lists reach")
      ->delimiter(',')
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 50));
  command->footer(
      "Both are CSV, also compressed by gzip, or Parquet, with a row for each item of a list: user (or\n"
      "request, if both have it), item, and rank from 1; without ranks the rows of a list are in order.\n"
      "A text and the number that hstu makes of it are one id. Prints one JSON object: recall@K is the mean\n"
      "share of the exact first K among the first K of the index, and a list without an answer has recall "
      "0.\n"
      "Example:\n  hstu ann-recall faiss.csv --against top.csv --k 10,100");
  command->callback([options] { fmt::print("{}\n", to_json(ann_recall(*options)).dump(2)); });
}

}  // namespace hstu
