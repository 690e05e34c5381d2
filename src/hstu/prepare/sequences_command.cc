#include "hstu/prepare/sequences_command.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "hstu/base/choice.h"
#include "hstu/base/contains.h"
#include "hstu/base/terminal.h"
#include "hstu/columns/movielens_source.h"
#include "hstu/columns/sequence_survey.h"
#include "hstu/events/builtin_schemas.h"
#include "hstu/prepare/prepare_words.h"

namespace hstu {
namespace {

constexpr Choice<char> kDelimiters[] = {{"blank", ' '}, {"tab", '\t'}, {"comma", ','}};

struct SequenceWords : PrepareWords {
  std::vector<std::string> inputs, times, texts, integers;
  std::string layout_word, delimiter, time_unit = "s";
  bool header = false, no_header = false, relative_time = false;

  // Nothing says how the lines are to be read.
  bool plain() const {
    return times.empty() && texts.empty() && integers.empty() && layout_word.empty() && delimiter.empty() &&
           !header && !no_header;
  }
};

// Whether ids are texts: as the user says, or as the dataset has them that the log is to fit.
std::optional<bool> texts_of(const SequenceWords& words, const char* kind) {
  if (contains(words.texts, kind) && contains(words.integers, kind))
    fail_usage("--texts and --integers both name \"{}\": it is one of them", kind);
  if (contains(words.texts, kind)) return true;
  if (contains(words.integers, kind)) return false;
  const std::string& known = words.append.empty() ? words.codes_from : words.append;
  if (known.empty()) return std::nullopt;
  return read_manifest(known).hashed.contains(kind);
}

SequenceAnswer survey(const SequenceWords& words) {
  SequenceQuestions questions;
  questions.files.assign(words.inputs.begin(), words.inputs.end());
  questions.times.assign(words.times.begin(), words.times.end());
  if (!words.times.empty() && words.times.size() != words.inputs.size())
    fail_usage("--times: expected a file for each of the {} files of --input, found {}", words.inputs.size(),
               words.times.size());
  if (!words.layout_word.empty())
    questions.layout = parse_word(kSequenceLayouts, words.layout_word, "--layout");
  if (!words.delimiter.empty()) questions.delimiter = parse_word(kDelimiters, words.delimiter, "--delimiter");
  if (words.header) questions.header = HeaderLine::kSkipped;
  if (words.no_header) questions.header = HeaderLine::kNone;
  questions.user_texts = texts_of(words, "user");
  questions.item_texts = texts_of(words, "item");
  return survey_sequences(questions);
}

Schema schema_of(const SequenceWords& words) {
  const std::vector<Path> files(words.inputs.begin(), words.inputs.end());
  if (words.plain() && std::all_of(files.begin(), files.end(), is_movielens_ratings))
    return movielens_sequences_schema(files);
  const SequenceAnswer answer = survey(words);
  for (const std::string& note : answer.notes) print_note("note: {}\n", note);
  const auto unit = time_unit_of(words.time_unit, "--time-unit");
  return sequences_schema(files, answer.format, unit, words.relative_time);
}

void add_line_options(CLI::App& command, SequenceWords& words) {
  command
      .add_option("--times", words.times,
                  "for each file of --input one with the times of its items: the same users, line by line,\n"
                  "and a time in the place of every item")
      ->expected(1, -1)
      ->check(CLI::ExistingFile);
  command
      .add_option("--layout", words.layout_word,
                  "lines: a user and its items, the oldest first; rows: a user, an item and maybe a time\n"
                  "(default: rows if all lines have two fields, or all have three)")
      ->check(CLI::IsMember(words_of(kSequenceLayouts)));
  command
      .add_option("--delimiter", words.delimiter,
                  "what separates fields: blank (any number of blanks and tabs), tab or comma (default: the\n"
                  "one that the first line has)")
      ->check(CLI::IsMember(words_of(kDelimiters)));
  CLI::Option* const header =
      command.add_flag("--header", words.header, "the first line of every file names the fields");
  command.add_flag("--no-header", words.no_header, "it does not, even if it looks so")->excludes(header);
  command
      .add_option("--texts", words.texts,
                  "user, item or both: ids that are texts, even if all look like numbers (default: ids are\n"
                  "integers if all of them are, without leading zeros)")
      ->expected(1, 2)
      ->check(CLI::IsMember({"user", "item"}));
  command
      .add_option("--integers", words.integers,
                  "user, item or both: ids that must be integers, and anything else is an error")
      ->expected(1, 2)
      ->check(CLI::IsMember({"user", "item"}));
  command.add_option("--time-unit", words.time_unit, "of times that are numbers: s, ms, us or ns")
      ->capture_default_str();
  command.add_flag("--relative-time", words.relative_time,
                   "times do not count from 1970: their years are not checked");
}

}  // namespace

void add_sequences_command(CLI::App& app) {
  const auto words = std::make_shared<SequenceWords>();
  CLI::App* const command = add_source(
      app, *words, {.min_history = 0, .window_seconds = 0, .users = {}}, "sequences",
      "Sequences of items: one user a line, or rows of user, item and time",
      "Examples:\n"
      "  hstu prepare sequences --input Beauty.txt --output datasets/beauty\n"
      "  hstu prepare sequences --input Beauty.txt --times Beauty_time.txt --core 5 --output DS\n"
      "  hstu prepare sequences --input ratings.dat --output datasets/ml-1m\n\n"
      "Three forms of files are known, plain or compressed by gzip, zstd or bzip2:\n"
      "  lines     7 50 51 52 4        the user 7 had the items 50, 51, 52, 4, the oldest first\n"
      "  rows      7,50,1390694400     one event: user, item and, if there is one, time\n"
      "  MovieLens ratings.dat, ratings.csv and u.data, by these names; every rating is an event\n\n"
      "Ids are numbers or texts. Without times, the events of a user have the times 0, 1, 2, ...,\n"
      "and the manifest says \"times\": \"order\". Every event is the action \"event\" and can be\n"
      "predicted. The table at the end counts neighbouring events at the same time, whose order is\n"
      "that of the file: --ties shuffle shows what a metric owes to it.\n\n"
      "Files with a header and further columns: hstu prepare csv --suggest FILE.");
  command->add_option("--input", words->inputs, "files of events, in this order")
      ->required()
      ->expected(1, -1)
      ->check(CLI::ExistingFile);
  add_line_options(*command, *words);
  command->callback([words] {
    if (words->output.empty() && words->append.empty()) throw CLI::RequiredError("--output or --append");
    run_source(*words, schema_of(*words));
  });
}

}  // namespace hstu
