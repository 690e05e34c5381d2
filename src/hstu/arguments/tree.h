// The commands and options that a CLI::App describes, as help shows them: those of the hidden group are left
// out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

namespace hstu {

// Direct subcommands in their order.
std::vector<const CLI::App*> commands_of(const CLI::App& app);
std::vector<std::string> names_of(const std::vector<const CLI::App*>& commands);
// The direct subcommand of this name, or nullptr.
const CLI::App* command_of(const CLI::App& app, std::string_view name);

// "hstu bench step".
std::string name_of(const CLI::App& command);

// Every option, positional arguments apart.
std::vector<const CLI::Option*> named_options(const CLI::App& command);
std::vector<const CLI::Option*> positional_arguments(const CLI::App& command);
// "--output", "-h", ...: every name of every option.
std::vector<std::string> options_of(const CLI::App& command);
// Whether a word follows the option.
bool takes_value(const CLI::Option& option);

}  // namespace hstu
