// The keys of a schema file (docs/prepare.md has an example), described for the reader in config/.
#include <utility>

#include "hstu/config/config.h"
#include "hstu/events/schema.h"

namespace hstu {
namespace {

constexpr Choice<TimeUnit> kTimeUnits[] = {{"s", TimeUnit::kSeconds},
                                           {"ms", TimeUnit::kMilliseconds},
                                           {"us", TimeUnit::kMicroseconds},
                                           {"ns", TimeUnit::kNanoseconds}};

constexpr Choice<ListRule> kLists[] = {{"refuse", ListRule::refuse}, {"first", ListRule::first}};

constexpr Choice<Times> kTimes[] = {{"seconds", Times::kSeconds}, {"order", Times::kOrder}};

void conditions(ConfigFields& fields, std::string_view name, std::vector<Condition>& list,
                std::string_view doc, bool required) {
  Rule rule = rule::parsed_by([](const std::string& text) { parse_condition(text); });
  rule.required = required;
  std::vector<std::string> texts;
  texts.reserve(list.size());
  for (const Condition& condition : list) texts.push_back(to_string(condition));
  fields.field(name, texts, doc, rule);
  list.clear();
  list.reserve(texts.size());
  for (const std::string& text : texts) list.push_back(parse_condition(text));
}

Rule one_character() {
  return rule::parsed_by([](const std::string& text) {
    const bool line_end = text == "\n" || text == "\r";
    if (text.size() > 1 || line_end)
      fail_usage("expected one character such as \";\" or \"\\t\", or none, found \"{}\"", text);
  });
}

std::string text_of(std::optional<char> c) {
  return c ? std::string(1, *c) : "";
}

std::optional<char> character_of(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text.front());
}

}  // namespace

static void describe(ConfigFields& fields, ActionRule& o) {
  int bit = o.bit;
  fields.field("name", o.name, "of the action", rule::required());
  fields.field("bit", bit, "1, 2, 4, 8, 16, 32 or 64", rule::required(rule::between(1, 64)));
  conditions(fields, "when", o.when, "conditions that an event with the action satisfies", true);
  fields.field("weight", o.weight, "factor of the losses of its events; those of several actions multiply");
  o.bit = static_cast<std::uint8_t>(bit);
}

static void describe(ConfigFields& fields, AttributeRule& o) {
  fields.field("name", o.name, "of the item attribute", rule::required());
  fields.field("column", o.value_column, "its column", rule::required());
  fields.field("file", o.file, "a mapping file with one row for every item; \"\": the event files");
  fields.field("item", o.item_column, "column of item ids in the mapping file");
  fields.choice("list", o.list, kLists, "of a column of lists, the first element; refuse: it is an error");
}

static void describe(ConfigFields& fields, ContextRule& o) {
  fields.field("name", o.name, "of the context column in the dataset", rule::required());
  fields.field("column", o.column, "its column in the log; \"\": the name");
  fields.choice("list", o.list, kLists, "of a column of lists, the first element; refuse: it is an error");
  if (o.column.empty()) o.column = o.name;
}

static void describe(ConfigFields& fields, EventFilters& o) {
  fields.choice(
      "duplicates", o.duplicates, kDuplicates,
      "events that their user has had: keep all, keep and count them, keep the first or the last one");
  fields.choice("duplicates_of", o.duplicates_of, kSameEvents,
                "which are the same: those with an item, or those that are equal in everything");
  fields.field("longest_user", o.longest_user, "users with more events leave; 0: no limit",
               rule::at_least(0));
  fields.field("core", o.core, "users and items with fewer events leave; 0: no limit", rule::at_least(0));
  fields.field("core_once", o.core_once, "by the counts of the whole log; else until none has fewer");
  fields.field("shortest_user", o.shortest_user, "users with fewer events leave, at the end; 0: no limit",
               rule::at_least(0));
}

static void describe(ConfigFields& fields, SplitRule& o) {
  fields.field("train_days", o.train_days, "days kept before the gap");
  fields.field("gap_minutes", o.gap_minutes, "minutes dropped between train and test");
  fields.field("test_days", o.test_days, "days held out at the end");
}

static void describe(ConfigFields& fields, Schema& o) {
  StringLists allowed;
  for (const AllowedTexts& column : o.allowed_texts) allowed.emplace(column.column, column.texts);
  fields.field("name", o.name, "of the dataset", rule::required());
  fields.field("files", o.files, "file names or patterns (*, ?), relative to the input folder",
               rule::required());
  fields.field("user", o.user, "column of user ids", rule::required());
  fields.field("item", o.item, "column of item ids", rule::required());
  fields.field("time", o.time, "column of times");
  fields.field("weight", o.weight, "column of weights: factors of the losses of events; \"\": none");
  fields.choice("times", o.times, kTimes, "order: there are no times; a user's rows are in their order");
  fields.choice("time_unit", o.time_unit, kTimeUnits, "of times that are numbers");
  fields.field("relative_time", o.relative_time, "times do not count from 1970; their years are not checked");
  fields.field("user_rows", o.user_rows, "user ids are below it; 0: not declared", rule::at_least(0));
  fields.field("item_rows", o.item_rows, "item ids are below it; 0: not declared", rule::at_least(0));
  fields.field("label", o.label,
               "the action that makes a rankable event a positive; \"\": there are no actions");
  fields.field("pools", o.pools, "actions whose events form histories", rule::distinct());
  conditions(fields, "rankable", o.rankable, "conditions that an event to predict satisfies", false);
  fields.field("keep_names", o.keep_names, "of ids that are texts, keep the texts: \"user\", \"item\"",
               rule::distinct());
  CsvFormat csv = o.csv.value_or(CsvFormat());
  std::string delimiter = csv.delimiter == '\0' ? "" : std::string(1, csv.delimiter);
  std::string quote = text_of(csv.quote), escape = text_of(csv.escape);
  fields.field("delimiter", delimiter, "of CSV files; \"\": a tab in *.tsv, otherwise a comma",
               one_character());
  fields.field("quote", quote, "of CSV files, around fields that contain delimiters; \"\": none",
               one_character());
  fields.field("escape", escape, "of CSV files, before a character that is meant as itself; \"\": none",
               one_character());
  fields.field("columns", csv.columns, "names of the columns of CSV files without a header");
  fields.field("integers", csv.integers, "columns of CSV files that hold integers, not texts");
  csv.delimiter = delimiter.empty() ? '\0' : delimiter.front();
  csv.quote = character_of(quote);
  csv.escape = character_of(escape);
  o.csv = csv;
  fields.field("null_as_zero", o.null_as_zero, "columns where a null counts as 0", rule::distinct());
  fields.field("nulls", o.nulls, "texts that mean null, in files of any kind");
  fields.field("drop_null", o.drop_null, "columns: rows with a null in one of them are left out");
  conditions(fields, "keep", o.keep, "conditions: rows that do not satisfy all of them are left out", false);
  fields.choice("ties", o.ties, kTieRules,
                "order of a user's events at the same time: of the log, or random");
  fields.field("ties_seed", o.ties_seed, "of the random order", rule::at_least(0));
  fields.field("allowed_texts", allowed, "the only texts that a column may hold");
  fields.sections("action", o.actions, "an action");
  fields.sections("attribute", o.attributes, "an item attribute");
  fields.sections("context", o.context, "a context column");
  fields.section("filter", o.filters, "users, items and events that are left out");
  fields.optional_section("split", o.split, "the split in time; without it every event is kept");
  o.allowed_texts.clear();
  for (auto& [column, texts] : allowed) o.allowed_texts.push_back({column, std::move(texts)});
}

TimeUnit time_unit_of(const std::string& word, const char* what) {
  return parse_word(kTimeUnits, word, what);
}

std::string word_of(TimeUnit unit) {
  return word_of(kTimeUnits, unit);
}

Schema read_schema(const Path& file) {
  Schema schema = load_config<Schema>(file);
  complete(schema);
  validate(schema, file.string());
  return schema;
}

}  // namespace hstu
