#include "hstu/events/schema.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "hstu/base/contains.h"
#include "hstu/base/error.h"
#include "hstu/base/text.h"
#include "hstu/events/event_weights.h"

namespace hstu {
namespace {

template <typename Rules>
std::vector<std::string> names_of(const Rules& rules) {
  std::vector<std::string> names;
  names.reserve(rules.size());
  for (const auto& rule : rules) names.push_back(rule.name);
  return names;
}

void check_names(const std::vector<std::string>& names, const char* kind, const std::string& source) {
  for (const std::string& name : names) {
    if (!is_plain_name(name)) {
      fail_usage("{}: {}: expected {}, found \"{}\"", source, kind, kPlainName, name);
    }
    if (std::count(names.begin(), names.end(), name) > 1) {
      fail_usage("{}: {}: the name \"{}\" is given twice", source, kind, name);
    }
  }
}

// A feature of a configuration names its keys, and requests name their columns: one namespace for both.
void check_keys(const Schema& schema, const std::string& source) {
  constexpr const char* kTaken[] = {"user", "item", "time", "hour", "weekday", "candidates"};
  const std::vector<std::string> attributes = names_of(schema.attributes),
                                 contexts = names_of(schema.context);
  for (const auto* names : {&attributes, &contexts}) {
    for (const std::string& name : *names) {
      if (std::find(std::begin(kTaken), std::end(kTaken), name) != std::end(kTaken))
        fail_usage(
            "{}: the name \"{}\" means something else in features and requests: choose another, such as "
            "\"{}_0\"",
            source, name, name);
    }
  }
  for (const std::string& name : contexts) {
    if (contains(attributes, name))
      fail_usage("{}: \"{}\" is the name of an attribute and of a context: rename one of them", source, name);
  }
  for (const auto& [key, column] :
       {std::pair("user", &schema.user), {"item", &schema.item}, {"time", &schema.time}}) {
    if (column == &schema.time && schema.times == Times::kOrder) continue;
    if (column->empty())
      fail_usage("{}: {}: expected the name of a column, found \"\"{}", source, key,
                 column == &schema.time ? "; of a log without times: times = \"order\"" : "");
  }
  if (schema.user == schema.item)
    fail_usage("{}: user and item are the same column, \"{}\"", source, schema.user);
}

void check_is_action(const Schema& schema, const std::string& name, const char* field,
                     const std::string& source) {
  const std::vector<std::string> actions = names_of(schema.actions);
  if (!contains(actions, name)) {
    fail_usage("{}: {}: expected the name of an action, found \"{}\"{}", source, field, name,
               suggestion(name, actions));
  }
}

void check_bits(const Schema& schema, const std::string& source) {
  unsigned taken = 0;
  for (const ActionRule& action : schema.actions) {
    const unsigned bit = action.bit;
    if (bit > 64 || !std::has_single_bit(bit)) {
      fail_usage("{}: action \"{}\": expected a bit of 1, 2, 4, 8, 16, 32 or 64, found {}", source,
                 action.name, bit);
    }
    if ((taken & bit) != 0)
      fail_usage("{}: action \"{}\": another action has the bit {}", source, action.name, bit);
    taken |= bit;
  }
}

void check_weights(const Schema& schema, const std::string& source) {
  for (const ActionRule& action : schema.actions)
    if (!is_weight(action.weight))
      fail_usage("{}: action \"{}\": weight: expected {}, found {}", source, action.name, kWeightRange,
                 action.weight);
  if (!schema.weight.empty() &&
      (schema.weight == schema.user || schema.weight == schema.item || schema.weight == schema.time))
    fail_usage("{}: weight and the user, item or time are the same column, \"{}\"", source, schema.weight);
}

void check_split(const SplitRule& split, const std::string& source) {
  constexpr std::int64_t kMostDays = 1'000'000;
  const auto in_range = [](std::int64_t value, std::int64_t least, std::int64_t most) {
    return value >= least && value <= most;
  };
  if (!in_range(split.train_days, 1, kMostDays) || !in_range(split.test_days, 0, kMostDays) ||
      !in_range(split.gap_minutes, 0, kMostDays)) {
    fail_usage(
        "{}: split: expected at least 1 train day, 0 gap minutes and 0 test days (and at most {} of each), "
        "found {}, "
        "{} and {}",
        source, kMostDays, split.train_days, split.gap_minutes, split.test_days);
  }
}

void check_characters(const CsvFormat& csv, const std::string& source) {
  const auto differ = [&](const char* a, char first, const char* b, char second) {
    if (first == second && first != '\0')
      fail_usage("{}: {} and {} are the same character, \"{}\"", source, a, b, first);
  };
  const char quote = csv.quote.value_or('\0'), escape = csv.escape.value_or('\0');
  differ("delimiter", csv.delimiter, "quote", quote);
  differ("delimiter", csv.delimiter, "escape", escape);
  differ("quote", quote, "escape", escape);
}

// Times that are an order belong to one user: no time divides a log of them.
void check_order(const Schema& schema, const std::string& source) {
  if (schema.times != Times::kOrder) return;
  if (!schema.time.empty())
    fail_usage("{}: times = \"order\" is for logs without times: remove it, or time = \"{}\"", source,
               schema.time);
  if (schema.split && schema.split->test_days > 0)
    fail_usage("{}: split: a log without times (times = \"order\") cannot be divided in time", source);
  if (schema.ties == TieRule::kShuffle)
    fail_usage("{}: ties = \"shuffle\": a log without times (times = \"order\") has no ties", source);
}

void check_filters(const EventFilters& filters, const std::string& source) {
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  for (const auto& [key, value] : {std::pair("core", filters.core),
                                   {"longest_user", filters.longest_user},
                                   {"shortest_user", filters.shortest_user}}) {
    if (value < 0 || value > kMost)
      fail_usage("{}: {}: expected 0 (no limit) to 2^31 events, found {}", source, key, value);
  }
  if (filters.core_once && filters.core == 0)
    fail_usage("{}: core_once says how core counts: set core too", source);
  const std::int64_t least = std::max(filters.core, filters.shortest_user);
  if (filters.longest_user > 0 && filters.longest_user < least)
    fail_usage(
        "{}: longest_user = {} and at least {} events of a user (core, shortest_user) leave out everyone",
        source, filters.longest_user, least);
}

}  // namespace

bool has_weights(const Schema& schema) {
  return !schema.weight.empty() || std::any_of(schema.actions.begin(), schema.actions.end(),
                                               [](const ActionRule& a) { return a.weight != 1; });
}

void complete(Schema& schema) {
  if (!schema.actions.empty() || !schema.label.empty() || !schema.pools.empty()) return;
  schema.actions = {{.name = "event", .bit = 1, .when = {}}};
  schema.label = "event";
  schema.pools = {"event"};
  schema.unlabelled = true;
}

void validate(const Schema& schema, const std::string& source) {
  check_names({schema.name}, "name", source);
  check_names(names_of(schema.actions), "action", source);
  check_names(names_of(schema.context), "context", source);
  check_names(names_of(schema.attributes), "attribute", source);
  check_keys(schema, source);
  if (schema.files.empty()) fail_usage("{}: files: name at least one event file", source);
  check_bits(schema, source);
  check_weights(schema, source);
  check_is_action(schema, schema.label, "label", source);
  if (schema.pools.empty())
    fail_usage("{}: pools: name at least one action whose events form histories", source);
  for (const std::string& pool : schema.pools) check_is_action(schema, pool, "pools", source);
  for (const AttributeRule& attribute : schema.attributes) {
    if (attribute.file.empty() != attribute.item_column.empty()) {
      fail_usage(
          "{}: attribute \"{}\": a mapping file needs both \"file\" and \"item\"; without them the value "
          "comes "
          "from the event files",
          source, attribute.name);
    }
  }
  for (const std::string* id : {&schema.user, &schema.time, &schema.item}) {
    if (contains(schema.null_as_zero, *id)) {
      fail_usage(
          "{}: null_as_zero: \"{}\" is the user, item or time, which every event must have; drop_null leaves "
          "out "
          "rows without it",
          source, *id);
    }
  }
  for (const std::string& column : schema.drop_null) {
    if (contains(schema.null_as_zero, column))
      fail_usage("{}: drop_null: \"{}\" is in null_as_zero too: remove it from one of them", source, column);
  }
  for (const std::string& of : schema.keep_names) {
    if (of != "user" && of != "item")
      fail_usage(
          "{}: keep_names: expected \"user\" or \"item\", found \"{}\"; attributes and contexts keep theirs",
          source, of);
  }
  if (schema.csv) check_characters(*schema.csv, source);
  if (schema.split) check_split(*schema.split, source);
  check_order(schema, source);
  check_filters(schema.filters, source);
}

namespace {

// "viewed: kind = view and seconds >= 5"; "" without conditions.
std::string rule_of(const std::string& of, const std::vector<Condition>& conditions) {
  std::vector<std::string> words;
  words.reserve(conditions.size());
  for (const Condition& condition : conditions) words.push_back(to_string(condition));
  return words.empty() ? "" : fmt::format("{}: {}", of, fmt::join(words, " and "));
}

std::vector<std::string> rules_of(const Schema& schema) {
  std::vector<std::string> rules{rule_of("rankable", schema.rankable), rule_of("keep", schema.keep)};
  for (const ActionRule& action : schema.actions) {
    rules.push_back(rule_of("action " + action.name, action.when));
    if (action.weight != 1) rules.push_back(fmt::format("weight of {}: {}", action.name, action.weight));
  }
  std::erase(rules, "");
  return rules;
}

}  // namespace

Manifest describe(const Schema& schema) {
  Manifest manifest;
  manifest.name = schema.name;
  for (const ActionRule& action : schema.actions)
    manifest.actions.push_back({.name = action.name, .bit = action.bit});
  manifest.times = schema.times;
  if (schema.ties == TieRule::kShuffle)
    manifest.ties = Ties{.neighbours = 0, .last_pairs = 0, .seed = schema.ties_seed};
  manifest.label = schema.label;
  manifest.pools = schema.pools;
  manifest.context = names_of(schema.context);
  manifest.weighted = has_weights(schema);
  manifest.rules = rules_of(schema);
  return manifest;
}

}  // namespace hstu
