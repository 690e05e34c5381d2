// hstu prepare kafka.
#pragma once

#include <CLI/CLI.hpp>

namespace hstu {

void add_kafka_command(CLI::App& app);

}  // namespace hstu
