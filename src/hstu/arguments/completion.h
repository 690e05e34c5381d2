// Completion of a command line by the program itself, so that it cannot differ from the program's options.
// The scripts in share/ ask for it in bash, zsh and fish.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace hstu {

// Prints a line "word<TAB>description" for everything that the last of `words` can be: a command or an option
// of the command that the words before it name. Prints nothing where a value is expected: the shell then
// offers files.
void print_completions(const CLI::App& app, const std::vector<std::string>& words);

}  // namespace hstu
