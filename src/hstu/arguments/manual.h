// Manual pages, written from the same descriptions as --help.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include "hstu/base/files.h"

namespace hstu {

// The page of a command in the macros of man(7); commands within it are sections of the page. `version`:
// "hstu 0.1.0".
std::string manual_page(const CLI::App& command, const std::string& version);

// Writes FOLDER/hstu-COMMAND.1 of each command of the app, and FOLDER/hstu.1, which lists them, if the app
// has a description: hstu-prepare, which is a part of the program, has none.
void write_manual(const CLI::App& app, const Path& folder, const std::string& version);

}  // namespace hstu
