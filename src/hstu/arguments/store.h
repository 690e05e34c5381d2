// Options of commands that use a store of objects.
#pragma once

#include <CLI/CLI.hpp>

#include "hstu/objects/store_options.h"

namespace hstu {

// --s3-credentials, --s3-profile, --s3-region and --s3-endpoint. `options` must outlive the command.
void add_store_options(CLI::App& command, StoreOptions& options);

// --s3-part, for commands that write.
void add_store_part(CLI::App& command, StoreOptions& options);

}  // namespace hstu
