// A schema defines the meaning of the columns of an event log. Those of Yambda and MovieLens are built in.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hstu/base/files.h"
#include "hstu/dataset/manifest.h"
#include "hstu/dataset/time_split.h"
#include "hstu/events/condition.h"

namespace hstu {

// Of integer time columns; Parquet's timestamps have their own unit.
enum class TimeUnit { kSeconds, kMilliseconds, kMicroseconds };

// An event has the action if every condition holds.
struct ActionRule {
  std::string name;
  std::uint8_t bit = 0;  // one of 1, 2, 4, ..., 64
  std::vector<Condition> when;
};

// The source of an attribute of items (artist, brand, ...). If an item has several values, the last row is
// used.
struct AttributeRule {
  std::string name;
  std::string value_column;
  std::string file;         // a mapping file, relative to the input folder; empty: the event files themselves
  std::string item_column;  // of the mapping file
};

struct ContextRule {
  std::string name;
  std::string column;
};

// The only texts that a column may hold.
struct AllowedTexts {
  std::string column;
  std::vector<std::string> texts;
};

struct Schema {
  std::string name;  // of the dataset
  // File names or patterns (*, ?), relative to the input folder; read in this order.
  std::vector<std::string> files;
  std::string user, time, item;  // columns
  TimeUnit time_unit = TimeUnit::kSeconds;
  std::vector<AttributeRule> attributes;
  std::vector<ContextRule> context;
  std::vector<ActionRule> actions;
  std::vector<Condition> rankable;        // of events that can be anchors; none: every event
  std::string label;                      // an action
  std::vector<std::string> pools;         // actions
  std::vector<std::string> null_as_zero;  // columns that may contain nulls; they count as 0
  std::vector<AllowedTexts> allowed_texts;
  std::optional<SplitRule> split;
};

// Throws UsageError naming a field of `schema` that contradicts another one; `source` names it in errors.
void validate(const Schema& schema, const std::string& source);

// Reads a schema file (TOML; docs/prepare.md). Throws UsageError with file, line, key and the nearest known
// key.
Schema read_schema(const Path& file);

// The part of a manifest that depends on the schema alone.
Manifest describe(const Schema& schema);

}  // namespace hstu
