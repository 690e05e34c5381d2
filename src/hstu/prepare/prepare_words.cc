#include "hstu/prepare/prepare_words.h"

#include <fmt/format.h>

#include "hstu/arguments/size.h"
#include "hstu/arguments/store.h"
#include "hstu/base/error.h"
#include "hstu/base/terminal.h"
#include "hstu/base/text.h"
#include "hstu/base/threads.h"
#include "hstu/columns/parquet_source.h"
#include "hstu/dataset/appended_before.h"
#include "hstu/events/log_stream.h"
#include "hstu/objects/fetched_folder.h"
#include "hstu/objects/object_url.h"
#include "hstu/prepare/index_command.h"
#include "hstu/prepare/prepare.h"
#include "hstu/prepare/summary.h"

namespace hstu {
namespace {

void add_filter_options(CLI::App& command, FilterWords& words) {
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  const CLI::Range counts(std::int64_t{0}, kMost);
  command
      .add_option("--core", words.core, "leave out users and items with fewer events, until none has fewer")
      ->check(counts);
  command.add_flag("--core-once", words.core_once, "for --core: compare the counts of the whole log, once");
  command.add_option("--shortest-user", words.shortest_user, "at the end, leave out users with fewer events")
      ->check(counts);
  command.add_option("--longest-user", words.longest_user, "at first, leave out users with more events")
      ->check(counts);
  command
      .add_option("--duplicates", words.duplicates,
                  "events that their user has had: keep, count, or leave all but the first or last one out")
      ->check(CLI::IsMember(words_of(kDuplicates)));
  command
      .add_option("--duplicates-of", words.duplicates_of,
                  "which events are the same: those with an item, or those that are equal in everything")
      ->check(CLI::IsMember(words_of(kSameEvents)));
  command
      .add_option("--ties", words.ties,
                  "order of a user's events at the same time: that of the log, or random")
      ->check(CLI::IsMember(words_of(kTieRules)));
  command.add_option("--seed", words.seed, "of --ties shuffle (default: 1)")->check(CLI::NonNegativeNumber);
}

void print_append_summary(const PrepareWords& words, const AppendReport& report) {
  const EventCounts& counts = report.segment.counts;
  if (report.repeated) {
    print_note("note: all {} events are the last segment of {} already: nothing was added ({})\n",
               with_separators(counts.events), words.append, kAppendedBefore);
    return print_dataset_summary(words.append);
  }
  fmt::print("{}", table({{"appended", with_separators(counts.events) + " events"},
                          {"users", fmt::format("{}, of whom {} are new", with_separators(counts.users),
                                                with_separators(report.new_users))},
                          {"late", fmt::format("{} events before the last of their user",
                                               with_separators(report.late))}}));
  if (report.duplicates > 0) {
    print_note(
        "warning: {} of {} events are in {} already, with the same user, time, item and actions: they are in "
        "histories twice\n",
        with_separators(report.duplicates), with_separators(counts.events), words.append);
  }
  if (!report.rules_before.empty() || !report.rules_now.empty()) {
    print_note(
        "warning: these events have other rules than those before them, with \"{}\" in place of \"{}\": the "
        "same row of a log is another event now\n",
        fmt::join(report.rules_now, "\", \""), fmt::join(report.rules_before, "\", \""));
  }
  print_dataset_summary(words.append);
}

}  // namespace

bool FilterWords::any() const {
  return core || longest_user || shortest_user || seed || core_once || !duplicates.empty() ||
         !duplicates_of.empty() || !ties.empty();
}

void FilterWords::apply(Schema& schema) const {
  EventFilters& filters = schema.filters;
  filters.core = core.value_or(filters.core);
  filters.longest_user = longest_user.value_or(filters.longest_user);
  filters.shortest_user = shortest_user.value_or(filters.shortest_user);
  filters.core_once = filters.core_once || core_once;
  if (!duplicates.empty()) filters.duplicates = parse_word(kDuplicates, duplicates, "--duplicates");
  if (!duplicates_of.empty())
    filters.duplicates_of = parse_word(kSameEvents, duplicates_of, "--duplicates-of");
  if (!ties.empty()) schema.ties = parse_word(kTieRules, ties, "--ties");
  schema.ties_seed = seed.value_or(schema.ties_seed);
  if (seed && schema.ties != TieRule::kShuffle) fail_usage("--seed is that of --ties shuffle: add it");
}

PrepareOptions prepare_options(const PrepareWords& words) {
  if (words.threads > 0) set_threads(words.threads);
  check_threads_start();
  set_parquet_threads(threads());
  const PrepareOptions options{.memory = static_cast<std::int64_t>(words.memory), .threads = threads()};
  set_parquet_memory(options.decoding());
  return options;
}

CLI::Option* add_input_folder(CLI::App& command, PrepareWords& words) {
  CLI::Option* const input =
      command
          .add_option("--input", words.input,
                      "folder of the event files, or s3://BUCKET/FOLDER, all of which is downloaded at first")
          ->required()
          ->type_name("DIR")
          ->check([](const std::string& word) {
            return is_object_url(word) ? std::string() : CLI::ExistingDirectory(word);
          });
  add_store_options(command, words.store);
  return input;
}

void with_local_input(PrepareWords& words, const std::function<void()>& work) {
  if (!is_object_url(words.input)) return work();
  if (words.append.empty() && words.output.empty()) throw CLI::RequiredError("--output or --append");
  if (words.append.empty() && std::filesystem::exists(words.output))
    fail_usage("{} exists already: choose another --output, or remove it", words.output);
  // Of a name without the / that a folder may end with.
  const Path beside = Path(words.append.empty() ? words.output : words.append) / "";
  const Path cache = beside.parent_path() += ".s3";
  words.input = fetch_folder(words.input, words.store, cache).string();
  work();
  std::filesystem::remove_all(cache);
}

void run_source(const PrepareWords& words, Schema schema) {
  words.filters.apply(schema);
  if (words.append.empty() && words.output.empty()) throw CLI::RequiredError("--output or --append");
  const PrepareOptions options = prepare_options(words);
  if (!words.append.empty()) {
    try {
      return print_append_summary(words, append(schema, words.input, words.append, options));
    } catch (const NoEventsError& error) {  // a quiet day is no failure
      print_note("note: {}: nothing is appended\n", error.what());
      return print_dataset_summary(words.append);
    }
  }
  if (words.codes_from.empty()) {
    prepare(schema, words.input, words.output, options, {}, words.anchors);
  } else {
    const Manifest known = read_manifest(words.codes_from);
    prepare(schema, words.input, words.output, options, read_dictionaries(words.codes_from, known),
            words.anchors);
  }
  print_dataset_summary(words.output);
}

CLI::App* add_source(CLI::App& app, PrepareWords& words, const AnchorRule& anchors, const char* name,
                     const char* description, const char* example) {
  words.anchors = anchors;
  CLI::App* const command = app.add_subcommand(name, description);
  command->footer(example);
  CLI::Option* const output =
      command->add_option("--output", words.output, "dataset folder to create; it must not exist yet");
  CLI::Option* const append =
      command
          ->add_option(
              "--append", words.append,
              "dataset to add these events to, instead of --output: with the same schema, texts keep\n"
              "their codes, and nothing that is there changes")
          ->check(CLI::ExistingDirectory)
          ->excludes(output);
  command
      ->add_option("--codes-from", words.codes_from,
                   "dataset whose texts keep their codes in the new one, so that its models can read it")
      ->check(CLI::ExistingDirectory)
      ->excludes(append);
  add_filter_options(*command, words.filters);
  add_anchor_options(*command, words.anchors);
  command->add_option("--threads", words.threads, "threads (default: all cores)")->check(CLI::Range(1, 4096));
  command
      ->add_option("--memory", words.memory,
                   "memory of the whole program, such as 512MiB (default: 2GiB); an unsorted log that is\n"
                   "larger is sorted on disk, beside the output")
      ->transform(size_between(PrepareOptions::kLeastMemory, std::int64_t{1} << 50));
  return command;
}

}  // namespace hstu
