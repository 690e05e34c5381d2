#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "hstu/base/terminal.h"
#include "hstu/base/text.h"
#include "hstu/cli/commands.h"
#include "hstu/cli/stop_signals.h"
#include "hstu/predict/predict.h"

namespace hstu {
namespace {

struct PredictWords {
  PredictOptions options;
  std::vector<std::string> columns;
  std::string time_unit = "s";
  std::string seen_actions;
  int threads = 0;
};

constexpr const char* kPredictHelp =
    "FILE is CSV with a header line, also compressed by gzip, or Parquet if its name ends in .parquet.\n"
    "-: standard input or output; the JSON object then goes to stderr.\n"
    "\n"
    "  requests   user, time, and item or candidates (a list such as \"12 7 31\");\n"
    "             optional: request, an id that the output repeats;\n"
    "             the context columns that the model reads\n"
    "  users      user; optional: time (else after the user's last event), request\n"
    "  events     user, item, time, action (names with | between them, or the sum of bits)\n"
    "  catalogue  item\n"
    "  output     request, user, item, score, and rank with --top\n"
    "\n"
    "A history has the events of the user before the time of the request. Scores are those of\n"
    "hstu eval, to the last bit. Prints one JSON object. docs/predict.md has the rest.\n"
    "\n"
    "Examples:\n"
    "  hstu predict run --requests requests.csv --output scores.csv\n"
    "  hstu predict run --requests users.csv --trained-items --top 10 --exclude-seen --output top.csv\n"
    "  hstu predict run --users users.csv --top 100 --exclude-seen --output top.parquet\n"
    "  zcat requests.csv.gz | hstu predict run --requests - --output - >scores.csv\n"
    "  hstu predict exported --events log.csv --requests requests.csv --output scores.csv";

}  // namespace

void add_predict_command(CLI::App& app) {
  auto words = std::make_shared<PredictWords>();
  PredictOptions& o = words->options;
  CLI::App* const command = app.add_subcommand("predict", "Score requests with a trained model");
  command->add_option("MODEL", o.model, "folder of a run, or one that hstu export wrote")->required();
  command->add_option("--requests", o.requests, "table of requests")->type_name("FILE");
  command
      ->add_option("--users", o.users,
                   "table of users: find the --top items of the whole catalogue for each, by a model of kind "
                   "retrieval or semantic_ids")
      ->type_name("FILE");
  command->add_option("--output", o.output, "table of scores, a new file")->required()->type_name("FILE");
  command->add_option("--checkpoint", o.checkpoint, "of this step, or best; default: the newest");
  command->add_option("--data", o.data, "dataset with the histories; default: the run's")->type_name("DIR");
  command->add_option("--events", o.events, "table with the histories instead")->type_name("FILE");
  command
      ->add_option(
          "--columns", words->columns,
          "names of columns in these files, such as user=uid,time=ts; also request, item, candidates, "
          "action")
      ->delimiter(',');
  command->add_option("--time-unit", words->time_unit, "of times that are numbers: s, ms, us or ns")
      ->capture_default_str();
  command->add_option("--catalogue", o.catalogue, "table of the items to score for every request")
      ->type_name("FILE");
  command->add_flag("--trained-items", o.trained_items, "score every item that training has seen");
  command->add_option("--top", o.top, "write only the K highest scores of a request, with their ranks")
      ->check(CLI::Range(std::int64_t{1}, std::numeric_limits<std::int64_t>::max()));
  command
      ->add_option(
          "--exclude-seen", words->seen_actions,
          "leave out items that the user has had before the request's time; with ACTION[,ACTION]: in "
          "events with one of these actions")
      ->expected(0, 1)
      ->type_name("[ACTIONS]");
  command->add_option("--by", o.by, "task whose score ranks; default: the first")->type_name("TASK");
  command
      ->add_option("--beam", o.beam,
                   "prefixes that a search of a model of kind semantic_ids keeps; default: its own, or --top "
                   "if that is more")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 16));
  command->add_option("--batch-size", o.batch_size, "samples of a batch; default: as the run's evaluations")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 24));
  command->add_option("--device", o.device, "host, cuda, cuda:N or auto; default: the run's own");
  command->add_flag("--row-stable", o.row_stable,
                    "the same bits of a score whatever else is asked: always on the host; slower on a GPU");
  command->add_option("--threads", words->threads, "0: all cores")->check(CLI::Range(0, kMostThreads));
  command->footer(kPredictHelp);
  command->callback([words, command] {
    use_threads(words->threads);
    words->options.columns.rename(words->columns);
    words->options.columns.time_step = parse_word(kTimeSteps, words->time_unit, "--time-unit");
    words->options.stop = &watch_stop_signals();
    const CLI::Option& seen = *command->get_option("--exclude-seen");
    words->options.exclude_seen = !seen.empty();
    if (!words->seen_actions.empty()) words->options.seen_actions = split(words->seen_actions, ',');
    try {
      const std::string result = to_json(predict(words->options)).dump(2) + "\n";
      if (is_standard_stream(words->options.output)) {
        print_note("{}", result);
      } else {
        fmt::print("{}", result);
      }
    } catch (const Stopped& stopped) {
      print_note("hstu: {}\n", stopped.what());
      throw ExitStatus{128 + stop_signal()};
    }
  });
}

}  // namespace hstu
