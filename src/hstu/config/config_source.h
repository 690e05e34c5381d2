// The sources of configuration values: TOML text, --set words, environment variables. This header depends on
// the TOML library; other folders use config.h.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "hstu/config/toml.h"

namespace hstu {

// The tables of `text`, changed by the overrides in their order. Throws UsageError with the place.
toml::table config_tables(std::string_view text, std::string_view source,
                          std::span<const std::string> overrides);

// A table whose key "value" has the TOML value `text`; throws UsageError if it is not one.
toml::table parse_value(std::string_view text);

// The text after the "=" of the override that is the node's value, as it was typed. None of a node that comes
// from a file, or is a part of an override's value.
std::optional<std::string> override_text(const toml::source_region& source);

// "run.toml line 12" or "--set training.lr=x".
std::string place(const toml::source_region& source);

// `text` with ${NAME} and ${NAME:-default} replaced; the default also replaces an empty variable, as in a
// shell.
std::string expand_environment(std::string_view text);

}  // namespace hstu
