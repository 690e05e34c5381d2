#include "hstu/arguments/completion.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "hstu/arguments/tree.h"

namespace hstu {
namespace {

void offer(std::string_view word, std::string_view start, std::string_view description) {
  if (!word.starts_with(start)) return;
  fmt::print("{}\t{}\n", word, description.substr(0, description.find('\n')));
}

}  // namespace

void print_completions(const CLI::App& app, const std::vector<std::string>& words) {
  const std::string last = words.empty() ? "" : words.back();
  const CLI::App* command = &app;
  bool value = false;  // the word is an option's
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (const CLI::App* const next = command_of(*command, words[i])) command = next;
    const std::vector<const CLI::Option*> options = named_options(*command);
    value = std::any_of(options.begin(), options.end(), [&](const CLI::Option* option) {
      return option->check_name(words[i]) && takes_value(*option);
    });
  }
  if (value) return;
  if (!last.starts_with("-")) {
    for (const CLI::App* next : commands_of(*command)) offer(next->get_name(), last, next->get_description());
    return;
  }
  for (const CLI::Option* option : named_options(*command)) {
    for (const std::string& name : option->get_lnames()) offer("--" + name, last, option->get_description());
  }
}

}  // namespace hstu
