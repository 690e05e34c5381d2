// What `./dev install` puts beside the program.
#pragma once

#include <optional>

#include "hstu/base/files.h"

namespace hstu {

// PREFIX/share/hstu/configs of a program in PREFIX/bin; nullopt if there is no such folder.
std::optional<Path> installed_configs();

// The configuration that the user's word names. A relative name that is no file here, such as quickstart.toml
// or suites/nvidia-e2e.toml, names an installed configuration if there is one, which is then printed; any
// other word is returned as it is.
Path find_config(const Path& word);

}  // namespace hstu
