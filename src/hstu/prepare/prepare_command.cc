#include "hstu/prepare/prepare_command.h"

#include <array>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "hstu/arguments/size.h"
#include "hstu/base/choice.h"
#include "hstu/base/error.h"
#include "hstu/base/files.h"
#include "hstu/base/glob.h"
#include "hstu/base/terminal.h"
#include "hstu/base/text.h"
#include "hstu/base/threads.h"
#include "hstu/columns/parquet_source.h"
#include "hstu/events/builtin_schemas.h"
#include "hstu/mlcommons/mlcommons.h"
#include "hstu/prepare/index_command.h"
#include "hstu/prepare/kafka_command.h"
#include "hstu/prepare/prepare.h"
#include "hstu/prepare/prepare_words.h"
#include "hstu/prepare/sequences_command.h"
#include "hstu/prepare/suggestion.h"
#include "hstu/prepare/summary.h"
#include "hstu/prepare/table_command.h"
#include "hstu/prepare/verify_command.h"

namespace hstu {
namespace {

enum class Layout { hstu, mlcommons };
constexpr Choice<Layout> kLayouts[] = {{"hstu", Layout::hstu}, {"mlcommons", Layout::mlcommons}};

constexpr int kMostDays = 1'000'000;  // as in a schema file; also of minutes

void run_mlcommons(const PrepareWords& words) {
  const MlcommonsOptions layout{.history_length = words.history_length,
                                .min_history = words.anchors.min_history};
  const MlcommonsCounts counts =
      prepare_mlcommons(words.input, words.output, words.split, layout, prepare_options(words));
  fmt::print("{}", table({{"cache", (Path(words.output) / mlcommons_cache_folder(layout)).string()},
                          {"users", with_separators(counts.users)},
                          {"events", with_separators(counts.events)},
                          {"sessions", with_separators(counts.sessions)},
                          {"anchors", with_separators(counts.anchors)},
                          {"test", with_separators(counts.test_events) + " events"},
                          {"size", human_bytes(static_cast<double>(counts.bytes))}}));
  if (counts.anchors == 0) {
    print_note(
        "note: the cache has no anchors to train from: no user has a listen after {} events; decrease "
        "--min-history\n",
        layout.min_history);
  }
}

void run_yambda(const PrepareWords& words) {
  if (parse_word(kLayouts, words.layout, "layout") == Layout::mlcommons) {
    if (words.output.empty()) throw CLI::RequiredError("--output");
    if (words.filters.any())
      fail_usage(
          "--layout mlcommons writes what MLCommons' own preparation does: remove --core, --duplicates, "
          "--ties and the like");
    return run_mlcommons(words);
  }
  const Path mappings = words.mappings.empty() ? find_yambda_mappings(words.input) : Path(words.mappings);
  run_source(words, yambda_schema(mappings, words.split));
}

void add_yambda(CLI::App& app, const std::shared_ptr<PrepareWords>& words) {
  CLI::App* const command =
      add_source(app, *words, {.min_history = 4086, .window_seconds = 86'400, .users = {}}, "yambda",
                 "Yambda: multi_event.parquet and the catalogue's two mappings",
                 "Example:\n"
                 "  hstu prepare yambda --input yambda/flat/50m --output datasets/yambda-50m\n\n"
                 "The last --test-days are held out, and the --gap-minutes before them are dropped. "
                 "--test-days 0 keeps\n"
                 "every event.");
  add_input_folder(*command, *words);
  command->add_option(
      "--mappings", words->mappings,
      "folder of artist_item_mapping.parquet and album_item_mapping.parquet\n(default: INPUT, "
      "INPUT/shared_metadata, or the places of Yambda's layouts)");
  command->add_option("--train-days", words->split.train_days, "days kept before the gap")
      ->capture_default_str()
      ->check(CLI::Range(1, kMostDays));
  command->add_option("--gap-minutes", words->split.gap_minutes, "minutes dropped between train and test")
      ->capture_default_str()
      ->check(CLI::Range(0, kMostDays));
  command->add_option("--test-days", words->split.test_days, "days held out at the end")
      ->capture_default_str()
      ->check(CLI::Range(0, kMostDays));
  command
      ->add_option(
          "--layout", words->layout,
          "hstu: a dataset for training; mlcommons: the files of MLCommons' own preparation in OUTPUT,\n"
          "its cache in OUTPUT/hstu_cache_L<--history-length>")
      ->capture_default_str()
      ->check(CLI::IsMember(words_of(kLayouts)));
  command
      ->add_option("--history-length", words->history_length,
                   "history length in the file names of --layout mlcommons")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 20));
  command->callback([words] { with_local_input(*words, [&] { run_yambda(*words); }); });
}

void add_movielens(CLI::App& app, const std::shared_ptr<PrepareWords>& words) {
  CLI::App* const command = add_source(
      app, *words, {.min_history = 5, .window_seconds = 0, .users = {}}, "movielens",
      "MovieLens: ml-100k, ml-1m, ml-20m, ml-25m or ml-32m",
      "Example:\n"
      "  hstu prepare movielens --input ml-100k --output datasets/movielens-100k\n\n"
      "Every rating is an event to rank; ratings of at least --positive-rating are the positives.");
  add_input_folder(*command, *words);
  command->add_option("--positive-rating", words->positive_rating, "smallest rating that counts as positive")
      ->capture_default_str()
      ->check([](const std::string& word) {
        const auto value = parse_number<double>(word);
        return value && std::isfinite(*value) ? "" : "expected a finite number, found " + word;
      });
  command->callback([words] {
    with_local_input(*words,
                     [&] { run_source(*words, movielens_schema(words->input, words->positive_rating)); });
  });
}

void add_kuairand(CLI::App& app, const std::shared_ptr<PrepareWords>& words) {
  CLI::App* const command =
      add_source(app, *words, {}, "kuairand", "KuaiRand: Pure, 1K or 27K",
                 "Example:\n"
                 "  hstu prepare kuairand --input KuaiRand-Pure --output datasets/kuairand-pure\n\n"
                 "Every impression of the standard logs is an event to rank. A history consists of the "
                 "events with an action.");
  add_input_folder(*command, *words);
  words->label = kuairand_actions().front();
  command->add_option("--label", words->label, "the action that makes an impression a positive")
      ->capture_default_str()
      ->check(CLI::IsMember(kuairand_actions()));
  command->callback([words] {
    with_local_input(*words, [&] { run_source(*words, kuairand_schema(words->input, words->label)); });
  });
}

std::vector<std::string> patterns_from(const Path& list) {
  std::vector<std::string> patterns;
  for (const std::string& name : split(read_file(list), '\n'))
    if (!name.empty()) patterns.push_back(glob_escaped(name));
  if (patterns.empty()) fail_usage("--files-from {}: it names no file", list.string());
  return patterns;
}

void add_parquet(CLI::App& app, const std::shared_ptr<PrepareWords>& words) {
  CLI::App* const command = add_source(
      app, *words, {}, "parquet", "Your own Parquet or CSV files, described by a small schema file",
      "Example:\n"
      "  hstu prepare parquet --schema shop.toml --input logs --output datasets/shop\n\n"
      "where shop.toml says:\n"
      "  name = \"shop\"\n"
      "  files = [\"events-*.parquet\"]\n"
      "  user = \"customer_id\"\n"
      "  item = \"product_id\"\n"
      "  time = \"at\"\n"
      "  time_unit = \"ms\"\n"
      "  label = \"bought\"\n"
      "  pools = [\"bought\", \"viewed\"]\n"
      "  [[action]]\n"
      "  name = \"bought\"\n"
      "  bit = 1\n"
      "  when = [\"kind = purchase\"]\n"
      "  [[action]]\n"
      "  name = \"viewed\"\n"
      "  bit = 2\n"
      "  when = [\"kind = view\", \"seconds >= 5\"]\n\n"
      "Ids may be integers or texts such as UUIDs; texts are hashed, and keep_names = [\"item\"] keeps\n"
      "them. CSV needs a header or columns = [...], and may be compressed: *.csv.gz. `hstu prepare csv`\n"
      "is the same command. docs/own-data.md has an example, docs/prepare.md explains every key.\n"
      "To begin with a guess from your files:\n"
      "  hstu prepare parquet --suggest logs/events-*.parquet --output shop.toml");
  command->alias("csv");
  CLI::Option* const schema = command->add_option("--schema", words->schema, "what the columns mean (TOML)");
  CLI::Option* const input = add_input_folder(*command, *words)->required(false);
  command
      ->add_option("--suggest", words->suggest,
                   "instead of preparing, guess a schema from these files or folders and write it to\n"
                   "--output (a file that does not exist yet; default: standard output)")
      ->expected(1, -1)
      ->excludes(schema)
      ->excludes(input);
  command
      ->add_option(
          "--files-from", words->files_from,
          "read the files that this one names, each on a line and relative to INPUT, instead of those "
          "of\nthe schema")
      ->check(CLI::ExistingFile)
      ->needs(schema);
  command->callback([words, required = std::array{schema, input}] {
    if (!words->suggest.empty())
      return write_suggestion({words->suggest.begin(), words->suggest.end()}, words->output);
    for (const CLI::Option* option : required) {
      if (option->count() == 0) throw CLI::RequiredError(option->get_name());
    }
    Schema read = read_schema(words->schema);  // its mistakes are found before a download
    if (!words->files_from.empty()) read.files = patterns_from(words->files_from);
    with_local_input(*words, [&] { run_source(*words, read); });
  });
}

// A cache contains selected events and their anchors, so there is no split and no choice of index.
void add_mlcommons(CLI::App& app, const std::shared_ptr<PrepareWords>& words) {
  CLI::App* const command =
      app.add_subcommand("mlcommons", "MLCommons' prepared cache of Yambda, without copying it");
  command->footer(
      "Example:\n"
      "  hstu prepare mlcommons --input processed_5b/hstu_cache_L4086 --metadata shared_metadata \\\n"
      "    --output datasets/yambda-5b\n\n"
      "Item ids, timestamps, is_organic and user ids are linked, not copied: do not move the cache.");
  command->add_option("--input", words->input, "folder of the cache's sixteen files")
      ->required()
      ->check(CLI::ExistingDirectory);
  command->add_option("--metadata", words->mappings, "folder of the catalogue's two mappings")
      ->required()
      ->check(CLI::ExistingDirectory);
  command->add_option("--output", words->output, "dataset folder to create; it must not exist yet")
      ->required();
  command->add_option("--threads", words->threads, "threads (default: all cores)")
      ->check(CLI::Range(1, 4096));
  command->callback([words] {
    if (words->threads > 0) set_threads(words->threads);
    check_threads_start();
    import_mlcommons(words->input, words->mappings, words->output);
    print_dataset_summary(words->output);
  });
}

}  // namespace

void add_prepare_commands(CLI::App& app) {
  add_yambda(app, std::make_shared<PrepareWords>());
  add_movielens(app, std::make_shared<PrepareWords>());
  add_kuairand(app, std::make_shared<PrepareWords>());
  add_parquet(app, std::make_shared<PrepareWords>());
  add_sequences_command(app);
  add_mlcommons(app, std::make_shared<PrepareWords>());
  add_index_command(app);
  add_kafka_command(app);
  add_verify_command(app);
  add_table_commands(app);
}

}  // namespace hstu
