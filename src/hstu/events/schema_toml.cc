// The schema file: TOML, every key checked, so that a misspelt key is an error and not a silent default.
#include <algorithm>
#include <concepts>
#include <limits>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/base/text.h"
#include "hstu/config/toml.h"
#include "hstu/events/schema.h"

namespace hstu {
namespace {

// One TOML table that remembers which keys were asked for.
class Section {
 public:
  Section(const toml::table& table, std::string file, std::string name)
      : table_(table), file_(std::move(file)), name_(std::move(name)) {}

  bool has(const std::string& key) {
    known_.push_back(key);
    return table_.contains(key);
  }
  std::string text(const std::string& key) { return value<std::string>(node(key), key, "a string"); }
  std::string text_or(const std::string& key, const std::string& otherwise) {
    return has(key) ? text(key) : otherwise;
  }
  std::int64_t integer(const std::string& key) { return value<std::int64_t>(node(key), key, "an integer"); }
  std::int64_t integer_or(const std::string& key, std::int64_t otherwise) {
    return has(key) ? integer(key) : otherwise;
  }
  std::vector<std::string> texts(const std::string& key) {
    std::vector<std::string> list;
    for (const toml::node& element : array(key, "a list of strings")) {
      list.push_back(value<std::string>(element, key, "a list of strings"));
    }
    return list;
  }
  std::vector<std::string> texts_or_none(const std::string& key) {
    return has(key) ? texts(key) : std::vector<std::string>{};
  }
  std::vector<Condition> conditions(const std::string& key) {
    std::vector<Condition> list;
    for (const std::string& text : texts(key)) {
      try {
        list.push_back(parse_condition(text));
      } catch (const UsageError& error) {
        fail_usage("{}: {}", place(node(key), key), error.what());
      }
    }
    return list;
  }
  // The tables of [[key]], in order.
  std::vector<Section> sections(const std::string& key) {
    std::vector<Section> list;
    if (!has(key)) return list;
    for (const toml::node& element : array(key, "tables [[...]]")) {
      if (!element.is_table()) fail_type(element, key, "tables [[...]]");
      list.emplace_back(*element.as_table(), file_, key);
    }
    return list;
  }
  Section section(const std::string& key) {
    const toml::node& found = node(key);
    if (!found.is_table()) fail_type(found, key, "a table [...]");
    return {*found.as_table(), file_, key};
  }
  std::vector<std::string> keys() const {
    std::vector<std::string> list;
    for (const auto& [key, ignored] : table_) list.emplace_back(key.str());
    return list;
  }
  // After everything was read: a key that nobody asked for is a mistake of the user.
  void refuse_unknown_keys() const {
    for (const auto& [key, found] : table_) {
      const std::string name(key.str());
      if (std::find(known_.begin(), known_.end(), name) != known_.end()) continue;
      fail_usage("{}: unknown key{}", place(found, name), suggestion(name, known_));
    }
  }

 private:
  const toml::node& node(const std::string& key) {
    if (!has(key)) {
      fail_usage("{}:{}: {}the key \"{}\" is missing", file_, table_.source().begin.line, prefix(), key);
    }
    return *table_.get(key);
  }
  const toml::array& array(const std::string& key, const char* expected) {
    const toml::node& found = node(key);
    if (!found.is_array()) fail_type(found, key, expected);
    return *found.as_array();
  }
  template <typename T>
  T value(const toml::node& found, const std::string& key, const char* expected) const {
    const auto content = found.value_exact<T>();
    if (!content) fail_type(found, key, expected);
    return *content;
  }
  [[noreturn]] void fail_type(const toml::node& found, const std::string& key, const char* expected) const {
    std::ostringstream type;
    type << found.type();
    fail_usage("{}: expected {}, found a value of type {}", place(found, key), expected, type.str());
  }
  std::string prefix() const { return name_.empty() ? "" : fmt::format("[{}]: ", name_); }
  std::string place(const toml::node& found, const std::string& key) const {
    return fmt::format("{}:{}: {}{}", file_, found.source().begin.line, prefix(), key);
  }

  const toml::table& table_;
  std::string file_, name_;
  std::vector<std::string> known_;
};

TimeUnit read_time_unit(const std::string& word, const Path& file) {
  if (word == "s") return TimeUnit::kSeconds;
  if (word == "ms") return TimeUnit::kMilliseconds;
  if (word == "us") return TimeUnit::kMicroseconds;
  fail_usage("{}: time_unit: expected \"s\", \"ms\" or \"us\", found \"{}\"", file.string(), word);
}

ActionRule read_action(Section section, const Path& file) {
  ActionRule action;
  action.name = section.text("name");
  const std::int64_t bit = section.integer("bit");
  if (!std::in_range<std::uint8_t>(bit)) {
    fail_usage("{}: action \"{}\": expected a bit of 1, 2, 4, 8, 16, 32 or 64, found {}", file.string(),
               action.name, bit);
  }
  action.bit = static_cast<std::uint8_t>(bit);
  action.when = section.conditions("when");
  section.refuse_unknown_keys();
  return action;
}

AttributeRule read_attribute(Section section) {
  AttributeRule attribute;
  attribute.name = section.text("name");
  attribute.value_column = section.text("column");
  attribute.file = section.text_or("file", "");
  attribute.item_column = section.text_or("item", "");
  section.refuse_unknown_keys();
  return attribute;
}

ContextRule read_context(Section section) {
  ContextRule context;
  context.name = section.text("name");
  context.column = section.text_or("column", context.name);
  section.refuse_unknown_keys();
  return context;
}

SplitRule read_split(Section section) {
  SplitRule split;
  split.train_days = section.integer_or("train_days", split.train_days);
  split.gap_minutes = section.integer_or("gap_minutes", split.gap_minutes);
  split.test_days = section.integer_or("test_days", split.test_days);
  section.refuse_unknown_keys();
  return split;
}

Schema read_root(Section root, const Path& file) {
  Schema schema;
  schema.name = root.text("name");
  schema.files = root.texts("files");
  schema.user = root.text("user");
  schema.item = root.text("item");
  schema.time = root.text("time");
  schema.time_unit = read_time_unit(root.text_or("time_unit", "s"), file);
  schema.label = root.text("label");
  schema.pools = root.texts("pools");
  if (root.has("rankable")) schema.rankable = root.conditions("rankable");
  schema.null_as_zero = root.texts_or_none("null_as_zero");
  if (root.has("allowed_texts")) {
    Section allowed = root.section("allowed_texts");
    for (const std::string& column : allowed.keys()) {
      schema.allowed_texts.push_back({.column = column, .texts = allowed.texts(column)});
    }
  }
  for (const Section& section : root.sections("action")) schema.actions.push_back(read_action(section, file));
  for (const Section& section : root.sections("attribute"))
    schema.attributes.push_back(read_attribute(section));
  for (const Section& section : root.sections("context")) schema.context.push_back(read_context(section));
  if (root.has("split")) schema.split = read_split(root.section("split"));
  root.refuse_unknown_keys();
  return schema;
}

}  // namespace

Schema read_schema(const Path& file) {
  toml::table table;
  if (!std::filesystem::exists(file)) fail_usage("{}: there is no such schema file", file.string());
  try {
    table = toml::parse(read_file(file), file.string());
  } catch (const toml::parse_error& error) {
    fail_usage("{}:{}: not valid TOML: {}", file.string(), error.source().begin.line, error.description());
  }
  Schema schema = read_root(Section(table, file.string(), ""), file);
  validate(schema, file.string());
  return schema;
}

}  // namespace hstu
