// What the command lines of hstu and hstu-prepare have in common: `help`, messages of wrong words, and the
// hidden verbs from which `./dev install` makes manual pages and completion.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace hstu {

// The words behind the program's name. "help train" becomes "train --help".
std::vector<std::string> words_of_command_line(int argc, char** argv);

// Parses `words` and runs the command that they name. Returns 0, also for --help and --version, which print.
// For wrong words prints one message that begins with "hstu: " and names the nearest command or option, and
// returns 2. `version`: of manual pages. Two verbs are for scripts and in no help: "complete WORDS..." prints
// how the last word can continue, "--man FOLDER" writes the manual pages of all commands.
int parse_command_line(CLI::App& app, const std::vector<std::string>& words, const std::string& version);

}  // namespace hstu
