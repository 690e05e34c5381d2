// Where configuration values come from: TOML text, --set words, environment variables. Only the reader of
// configurations includes this (it is the one place that knows the TOML library).
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "hstu/config/toml.h"

namespace hstu {

// The tables of `text` with the overrides on top, the last one winning. Throws UsageError with the place.
toml::table config_tables(std::string_view text, std::string_view source,
                          std::span<const std::string> overrides);

// The one value that `text` spells; throws UsageError when it spells none.
toml::table parse_value(std::string_view text);

bool is_override(const toml::source_region& source);

// The text after the "=" of the override a node comes from.
std::string override_text(const toml::source_region& source);

// "run.toml line 12" or "--set training.lr=x".
std::string place(const toml::source_region& source);

// `text` with ${NAME} and ${NAME:-default} replaced; the default also stands for an empty variable, as in a
// shell.
std::string expand_environment(std::string_view text);

}  // namespace hstu
