#include "hstu/arguments/parse.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "hstu/arguments/completion.h"
#include "hstu/arguments/manual.h"
#include "hstu/arguments/tree.h"
#include "hstu/base/terminal.h"
#include "hstu/base/text.h"

namespace hstu {
namespace {

constexpr int kWrongWords = 2;

bool is_option(std::string_view word) {
  return word.size() > 1 && word.front() == '-';
}

// Whether a word that names no command can be an argument, as in `hstu export RUN` beside `hstu export
// tables`.
bool takes_words(const CLI::App& command) {
  const std::vector<const CLI::Option*> options = command.get_options();
  return std::any_of(options.begin(), options.end(), [](const auto* o) { return o->get_positional(); });
}

// The command that `words` name. Sets `unknown` to a word that is where a command is expected and is
// none: CLI11 would only say that one is missing.
const CLI::App& named_command(const CLI::App& app, const std::vector<std::string>& words,
                              std::string& unknown) {
  const CLI::App* command = &app;
  for (const std::string& word : words) {
    if (commands_of(*command).empty() || is_option(word)) break;
    const CLI::App* const next = command_of(*command, word);
    if (next == nullptr) {
      if (!takes_words(*command)) unknown = word;
      break;
    }
    command = next;
  }
  return *command;
}

// What is wrong, in one line. A word that nothing takes explains an option that seems to be missing.
std::string complaint(const CLI::App& app, const CLI::App& command, const CLI::ParseError& error) {
  const auto code = static_cast<CLI::ExitCodes>(error.get_exit_code());
  if (code != CLI::ExitCodes::ExtrasError && code != CLI::ExitCodes::RequiredError) return error.what();
  const std::vector<std::string> extra = app.remaining(true);
  const auto option = std::find_if(extra.begin(), extra.end(), is_option);
  if (option != extra.end()) {
    const std::string word = option->substr(0, option->find('='));
    return fmt::format("{} has no option \"{}\"{}", name_of(command), word,
                       suggestion(word, options_of(command)));
  }
  if (!extra.empty()) return fmt::format("{}: unexpected argument \"{}\"", name_of(command), extra.front());
  const std::vector<const CLI::App*> commands = commands_of(command);
  if (commands.empty()) return error.what();
  return fmt::format("{} needs a command: {}", name_of(command), fmt::join(names_of(commands), ", "));
}

template <typename Number>
std::string whole_number_problem(const std::string& word) {
  const auto number = parse_number<Number>(word);
  if (number && std::to_string(*number) == word) return "";
  return fmt::format("expected a whole number of at most 64 bits, without zeros before it, found {}", word);
}

std::string number_problem(const std::string& word) {
  return parse_number<double>(word) ? "" : fmt::format("expected a number, found {}", word);
}

// CLI11 takes the largest number for one beyond 64 bits, -1 as a large unsigned one, 010 as 8, and NaN inside
// of every range.
void check_numbers(CLI::App& app) {
  for (CLI::Option* const option : app.get_options([](CLI::Option*) { return true; })) {
    const std::string type = option->get_type_name();
    // A type of its own ("SECONDS") has that of a range behind it.
    const auto is = [&](const std::string& name) {
      return type.starts_with(name) || type.find(":" + name + " in ") != std::string::npos;
    };
    if (is("FLOAT")) option->check(number_problem);
    if (is("INT")) option->check(whole_number_problem<std::int64_t>);
    if (is("UINT")) option->check(whole_number_problem<std::uint64_t>);
  }
  for (CLI::App* const command : app.get_subcommands([](CLI::App*) { return true; })) check_numbers(*command);
}

int refuse(const CLI::App& command, const std::string& message) {
  print_note("hstu: {}\nSee {} --help.\n", message, name_of(command));
  return kWrongWords;
}

}  // namespace

std::vector<std::string> words_of_command_line(int argc, char** argv) {
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  if (words.empty() || words.front() != "help") return words;
  words.erase(words.begin());
  words.emplace_back("--help");
  return words;
}

int parse_command_line(CLI::App& app, const std::vector<std::string>& words, const std::string& version) {
  if (!words.empty() && words.front() == "complete") {
    print_completions(app, {words.begin() + 1, words.end()});
    return 0;
  }
  if (words.size() == 2 && words.front() == "--man") {
    write_manual(app, words.back(), version);
    return 0;
  }
  std::string unknown;
  const CLI::App& command = named_command(app, words, unknown);
  if (!unknown.empty()) {
    return refuse(command, fmt::format("{} has no command \"{}\"{}", name_of(command), unknown,
                                       suggestion(unknown, names_of(commands_of(command)))));
  }
  check_numbers(app);
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));  // CLI11 takes the last word first
  } catch (const CLI::Success& success) {
    app.exit(success);  // prints the help or the version
  } catch (const CLI::ParseError& error) {
    return refuse(command, complaint(app, command, error));
  }
  return 0;
}

}  // namespace hstu
