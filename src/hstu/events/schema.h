// A schema defines the meaning of the columns of an event log. Those of Yambda and MovieLens are built in.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hstu/base/files.h"
#include "hstu/columns/csv_format.h"
#include "hstu/columns/event_times.h"
#include "hstu/columns/sequence_format.h"
#include "hstu/dataset/event_filters.h"
#include "hstu/dataset/manifest.h"
#include "hstu/dataset/time_split.h"
#include "hstu/events/condition.h"

namespace hstu {

// An event has the action if every condition holds.
struct ActionRule {
  std::string name;
  std::uint8_t bit = 0;  // one of 1, 2, 4, ..., 64
  std::vector<Condition> when;
  double weight = 1;  // of its events: a factor of their losses
};

// What is read of a column of lists.
enum class ListRule { refuse, first };

// The source of an attribute of items (artist, brand, ...). If an item has several values, the last row of
// a mapping file is used, and of the log the latest event that training may see.
struct AttributeRule {
  std::string name;
  std::string value_column;
  std::string file;         // a mapping file, relative to the input folder; empty: the event files themselves
  std::string item_column;  // of the mapping file
  ListRule list = ListRule::refuse;
};

struct ContextRule {
  std::string name;
  std::string column;
  ListRule list = ListRule::refuse;
  std::int64_t null_value = 0;  // of an event without a value, if the column may have nulls
};

// The only texts that a column may hold.
struct AllowedTexts {
  std::string column;
  std::vector<std::string> texts;
};

// The order of a user's events at the same time: that of the log, or a random one.
enum class TieRule { kInput, kShuffle };
inline constexpr Choice<TieRule> kTieRules[] = {{"input", TieRule::kInput}, {"shuffle", TieRule::kShuffle}};

struct Schema {
  std::string name;  // of the dataset
  // File names or patterns (*, ?), relative to the input folder; read in this order.
  std::vector<std::string> files;
  std::string user, time, item;   // columns
  std::string weight;             // column of factors of losses; "": none
  Times times = Times::kSeconds;  // kOrder: there is no column of times, and the rows are in their order
  TimeUnit time_unit = TimeUnit::kSeconds;
  bool relative_time = false;  // times do not count from 1970, so their years say nothing about the unit
  std::int64_t user_rows = 0, item_rows = 0;  // ids are below them; 0: not declared
  std::vector<AttributeRule> attributes;
  std::vector<ContextRule> context;
  std::vector<ActionRule> actions;
  std::vector<Condition> rankable;        // of events that can be anchors; none: every event
  std::string label;                      // an action
  bool unlabelled = false;                // the log says nothing about its events: all are the same action
  std::vector<std::string> pools;         // actions
  std::vector<std::string> null_as_zero;  // columns that may contain nulls; they count as 0
  std::vector<std::string> nulls;         // texts that mean null
  std::vector<std::string> drop_null;     // columns: rows with a null there are left out
  std::vector<Condition> keep;            // rows that do not satisfy them are left out
  EventFilters filters;                   // what is left out by counts
  TieRule ties = TieRule::kInput;
  std::int64_t ties_seed = 1;
  std::vector<AllowedTexts> allowed_texts;
  std::vector<std::string> keep_names;  // "user", "item": keep the texts of ids that are hashes of texts
  // Of files whose names end in .csv, .tsv, .csv.gz or .tsv.gz; absent: MovieLens' files are known by name.
  std::optional<CsvFormat> csv;
  // Of files with lines of ids alone, which have the columns user, item and time.
  std::optional<SequenceFormat> sequences;
  std::optional<SplitRule> split;
};

// Whether a column or an action gives the events weights.
bool has_weights(const Schema& schema);

// Gives a schema without actions, label and pools the action that every event has, "event".
void complete(Schema& schema);

// "s", "ms" or "us".
std::string word_of(TimeUnit unit);
// UsageError for any other word, naming `what`.
TimeUnit time_unit_of(const std::string& word, const char* what);

// Throws UsageError naming a field of `schema` that contradicts another one; `source` names it in errors.
void validate(const Schema& schema, const std::string& source);

// Reads a schema file (TOML; docs/prepare.md). Throws UsageError with file, line, key and the nearest known
// key.
Schema read_schema(const Path& file);

// The part of a manifest that depends on the schema alone.
Manifest describe(const Schema& schema);

}  // namespace hstu
