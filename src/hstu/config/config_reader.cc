#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <type_traits>

#include "hstu/base/contains.h"
#include "hstu/base/error.h"
#include "hstu/base/terminal.h"
#include "hstu/base/text.h"
#include "hstu/config/config.h"
#include "hstu/config/config_source.h"

namespace hstu {
namespace {

std::string found(const toml::node& node) {
  if (node.is_string()) return fmt::format("the string \"{}\"", node.as_string()->get());
  if (const auto* value = node.as_integer()) return fmt::format("the integer {}", value->get());
  if (const auto* value = node.as_floating_point()) return fmt::format("the number {}", value->get());
  if (const auto* value = node.as_boolean()) return value->get() ? "true" : "false";
  return node.is_table() ? "a section" : node.is_array() ? "a list" : "a date or time";
}

[[noreturn]] void fail_type(std::string_view expected, const toml::node& node) {
  throw UsageError(fmt::format("expected {}, found {}", expected, found(node)));
}

// Whether the node is the value of a --set word.
bool is_overridden(const toml::node& node) {
  return override_text(node.source()).has_value();
}

template <typename T>
void check_range(T value, const Rule& rule) {
  const auto number = static_cast<double>(value);
  const bool low_enough = rule.low_excluded ? number > rule.low : number >= rule.low;
  if (!low_enough || number > rule.high) fail_usage("expected a number {}, found {}", rule.text(), value);
}

// read_value(node, rule, target) throws UsageError with the expected and the found value.
// A string from --set is the text as typed, so that a name like 2024-01-01 needs no quotes.
void read_value(const toml::node& node, const Rule& rule, std::string& target) {
  const std::optional<std::string> typed = node.is_value() ? override_text(node.source()) : std::nullopt;
  if (rule.or_integer && node.is_integer() && !typed) {
    target = std::to_string(node.as_integer()->get());
    if (rule.parse != nullptr) rule.parse(target);
    return;
  }
  if (!node.is_string() && !typed.has_value()) fail_type("a string", node);
  std::string text = expand_environment(node.is_string() ? node.as_string()->get() : *typed);
  if (!rule.words.empty() && !contains(rule.words, text)) {
    fail_usage("expected {}, found \"{}\"{}", rule.text(), text, suggestion(text, rule.words));
  }
  if (rule.parse != nullptr) rule.parse(text);
  target = std::move(text);
}

void read_value(const toml::node& node, const Rule& rule, Path& target) {
  std::string text;
  read_value(node, rule, text);
  target = text;
}

void read_plain(const toml::node& node, const Rule& /*rule*/, bool& target) {
  if (!node.is_boolean()) fail_type("true or false", node);
  target = node.as_boolean()->get();
}

template <std::integral T>
void read_plain(const toml::node& node, const Rule& rule, T& target) {
  if (!node.is_integer()) fail_type("an integer", node);
  const std::int64_t value = node.as_integer()->get();
  if (!std::in_range<T>(value)) {
    // Integers of TOML have 63 bits and a sign.
    const auto most =
        std::min<std::uint64_t>(std::numeric_limits<T>::max(), std::numeric_limits<std::int64_t>::max());
    fail_usage("expected an integer in [{}, {}], found {}", std::numeric_limits<T>::min(), most, value);
  }
  check_range(value, rule);
  constexpr std::int64_t kLargest = 1'000'000'000'000'000;  // sums of a few such numbers do not overflow
  if (std::is_same_v<T, std::int64_t> && (value > kLargest || value < -kLargest))
    fail_usage("expected an integer in [{}, {}], found {}", -kLargest, kLargest, value);
  target = static_cast<T>(value);
}

// UsageError for an integer between two neighbouring numbers of double.
double as_double(std::int64_t integer) {
  const auto value = static_cast<double>(integer);
  constexpr double kBeyond = 0x1p63;  // static_cast of it would be undefined
  if (value >= kBeyond || static_cast<std::int64_t>(value) != integer) {
    fail_usage(
        "expected a number, found the integer {}, which has more digits than a number keeps: write {:.1f}",
        integer, value);
  }
  return value;
}

template <std::floating_point T>
void read_plain(const toml::node& node, const Rule& rule, T& target) {
  if (!node.is_floating_point() && !node.is_integer()) fail_type("a number", node);
  const double value =
      node.is_integer() ? as_double(node.as_integer()->get()) : node.as_floating_point()->get();
  if (!std::isfinite(value) || !std::isfinite(static_cast<T>(value)))
    fail_usage("expected a finite number, found {}", value);
  if (value != 0 && std::abs(value) < std::numeric_limits<float>::min())
    fail_usage("expected 0 or a number that fp32 keeps, of at least 1.2e-38, found {}", value);
  check_range(value, rule);
  target = static_cast<T>(value);
}

template <typename T>
void read_plain(const toml::node& node, const Rule& rule, std::vector<T>& target);

// Numbers, booleans and lists may also be written as environment variables in a string.
template <typename T>
void read_value(const toml::node& node, const Rule& rule, T& target) {
  if constexpr (std::is_same_v<T, std::uint64_t>) {
    if (rule.or_random && node.is_string() && node.as_string()->get() == "random") {
      target = kRandomNumber;
      return;
    }
  }
  if (const auto* text = node.as_string(); text != nullptr && text->get().find("${") != std::string::npos) {
    const toml::table parsed = parse_value(expand_environment(text->get()));
    read_plain(*parsed.get("value"), rule, target);
  } else {
    read_plain(node, rule, target);
  }
}

template <typename T>
void read_plain(const toml::node& node, const Rule& rule, std::vector<T>& target) {
  const toml::array* list = node.as_array();
  if (list == nullptr) fail_type("a list", node);
  std::vector<T> values(list->size());
  for (std::size_t i = 0; i < list->size(); ++i) {
    const toml::node& element = *list->get(i);
    if (std::is_same_v<T, std::string> && !element.is_string()) fail_type("a list of strings", element);
    read_value(element, rule, values[i]);
  }
  for (auto value = values.begin(); rule.distinct && value != values.end(); ++value)
    if (std::find(values.begin(), value, *value) != value) fail_usage("{} is named twice", *value);
  target = std::move(values);
}

void read_value(const toml::node& node, const Rule& rule, StringLists& target) {
  const toml::table* const table = node.as_table();
  if (table == nullptr) fail_type("a section of lists of strings", node);
  StringLists lists;
  for (const auto& [key, list] : *table) {
    try {
      read_value(list, rule, lists[std::string(key.str())]);
    } catch (const UsageError& error) {
      fail_usage("{}: {}", key.str(), error.what());
    }
  }
  target = std::move(lists);
}

}  // namespace

struct ConfigReader::State {
  struct Section {
    std::string path;                       // "" for the root, "features.context[1]" for an element of a list
    const toml::table* table;               // null if the text does not have it
    bool by_default;                        // an element of a default list: no key of it is missing
    std::vector<std::string> known;         // keys described so far
    std::string decides = {}, advice = {};  // of decides()
    std::vector<std::string> of_another = {};  // keys with values of another choice

    std::string full(std::string_view name) const {
      return path.empty() ? std::string(name) : fmt::format("{}.{}", path, name);
    }
  };

  std::string source;
  toml::table tables;
  std::vector<Section> sections;  // every section described, in order
  std::vector<std::size_t> open;  // the sections being described, outermost first
  std::vector<std::string> problems;
  UnreadKeys unread = UnreadKeys::refused;
  std::map<std::string, const toml::node*> changed;  // by path: keys with another value than their default

  Section& current() { return sections[open.back()]; }

  // The place of the header of the section being described; the file if it has none.
  std::string place_of_section() {
    const Section& section = current();
    return section.path.empty() || section.table == nullptr ? source : place(section.table->source());
  }

  // The node of a described key, or null; describing a key twice is a defect.
  const toml::node* describe_key(std::string_view name) {
    Section& section = current();
    require(!contains(section.known, name), "the configuration key {} is described twice",
            section.full(name));
    section.known.emplace_back(name);
    return section.table == nullptr ? nullptr : section.table->get(name);
  }

  void open_section(std::string path, const toml::table* table, bool by_default) {
    sections.push_back({std::move(path), table, by_default, {}});
    open.push_back(sections.size() - 1);
  }

  void report(const std::string& path, std::string_view problem, const toml::node& node) {
    // The place ends the first line of a problem; further lines show text with a caret under it.
    const std::string_view first = problem.substr(0, problem.find('\n'));
    problems.push_back(
        fmt::format("{}: {} ({}){}", path, first, place(node.source()), problem.substr(first.size())));
  }

  // Whether --set chose another value of the deciding key than the file was written for.
  static bool is_chosen_by_set(const Section& section) {
    const toml::node* const node = section.decides.empty() ? nullptr : section.table->get(section.decides);
    return node != nullptr && is_overridden(*node);
  }

  // Whether the file has every key of this one's section, as the resolved file of a run.
  bool is_resolved(const std::string& path) const {
    const auto section = std::find_if(sections.begin(), sections.end(), [&](const Section& one) {
      return one.path == path.substr(0, path.rfind('.'));
    });
    return section != sections.end() && section->table != nullptr &&
           std::all_of(section->known.begin(), section->known.end(),
                       [&](const std::string& key) { return section->table->contains(key); });
  }

  // Whether --set has a key beside this one.
  bool has_overrides(const std::string& path) const {
    const toml::table* const table = toml::at_path(tables, path.substr(0, path.rfind('.'))).as_table();
    return table != nullptr && std::any_of(table->begin(), table->end(),
                                           [](const auto& entry) { return is_overridden(entry.second); });
  }

  // One problem in place of one for each key of the other choice.
  std::string keys_of_another_choice(const Section& section, const std::vector<std::string>& keys) const {
    return fmt::format("{}: [{}] of {} has keys of another {}: {} ({}); {}", section.full(section.decides),
                       section.path, source, section.decides, fmt::join(keys, ", "),
                       place(section.table->get(section.decides)->source()), section.advice);
  }

  std::string unknown_key(const Section& section, const toml::key& key, const toml::node& node) const {
    std::string advice;
    for (const Section& other : sections) {  // the right key in the wrong section
      if (!contains(other.known, key.str())) continue;
      advice = fmt::format("; did you mean \"{}\"?", other.full(key.str()));
      break;
    }
    if (advice.empty()) advice = suggestion(key.str(), section.known);
    return fmt::format("unknown {} {} in {}{}", node.is_table() ? "section" : "key", section.full(key.str()),
                       place(key.source()), advice);
  }
};

ConfigReader::ConfigReader(std::string_view text, std::string_view source,
                           std::span<const std::string> overrides, UnreadKeys unread)
    : state_(std::make_unique<State>()) {
  state_->source = source;
  state_->unread = unread;
  state_->tables = config_tables(text, source, overrides);
  state_->open_section("", &state_->tables, false);
}

ConfigReader::~ConfigReader() = default;

void ConfigReader::visit(const Field& field) {
  const std::string path = state_->current().full(field.name);
  const toml::node* node = state_->describe_key(field.name);
  if (node == nullptr) {
    if (field.rule.required && !state_->current().by_default) {
      state_->problems.push_back(
          fmt::format("missing key {} in {}: {}", path, state_->place_of_section(), field.doc));
    }
    return;
  }
  const std::string before = toml_value(field.value);
  try {
    std::visit([&](auto* target) { read_value(*node, field.rule, *target); }, field.value);
    if (toml_value(field.value) != before) state_->changed[path] = node;
  } catch (const UsageError& error) {
    State::Section& section = state_->current();
    if (State::is_chosen_by_set(section) && !is_overridden(*node))
      section.of_another.emplace_back(field.name);
    else
      state_->report(path, error.what(), *node);
  }
}

void ConfigReader::enter(std::string_view name, std::string_view /*doc*/) {
  std::string path = state_->current().full(name);
  const toml::node* node = state_->describe_key(name);
  if (node != nullptr && !node->is_table()) {
    state_->report(path, fmt::format("expected a section, found {}", found(*node)), *node);
  }
  state_->open_section(std::move(path), node == nullptr ? nullptr : node->as_table(),
                       state_->current().by_default);
}

bool ConfigReader::enter_optional(std::string_view name, bool /*present*/, std::string_view doc) {
  const State::Section& section = state_->current();
  if (section.table != nullptr && section.table->contains(name)) {
    enter(name, doc);
    return true;
  }
  state_->describe_key(name);
  return false;
}

void ConfigReader::leave() {
  state_->open.pop_back();
}

void ConfigReader::decides(std::string_view name, std::string_view advice) {
  state_->current().decides = name;
  state_->current().advice = advice;
}

void ConfigReader::read_if(bool is_read, std::string_view name, std::string_view readers) {
  const std::string path = state_->current().full(name);
  const auto found = state_->changed.find(path);
  if (is_read || found == state_->changed.end()) return;
  const toml::node& node = *found->second;
  const bool is_of_the_file = !is_overridden(node);
  if (is_of_the_file && (state_->unread == UnreadKeys::taken || state_->is_resolved(path))) return;
  if (is_of_the_file && state_->has_overrides(path)) {  // which may have chosen what does not read it
    print_note("note: {}: it has no effect here, because it is read {} ({})\n", path, readers,
               place(node.source()));
    return;
  }
  state_->report(path, fmt::format("it has no effect here, because it is read {}: leave it out", readers),
                 node);
}

std::vector<std::string> ConfigReader::section_names(std::vector<std::string> present,
                                                     std::string_view /*example*/) {
  const State::Section& section = state_->current();
  if (section.table == nullptr) return present;
  for (const auto& [key, node] : *section.table) {
    const std::string name(key.str());
    if (node.is_table() && !contains(section.known, name) && !contains(present, name))
      present.push_back(name);
  }
  return present;
}

std::optional<std::size_t> ConfigReader::enter_list(std::string_view name, std::size_t /*size*/,
                                                    std::string_view /*doc*/) {
  const std::string path = state_->current().full(name);
  const toml::node* node = state_->describe_key(name);
  if (node == nullptr) return std::nullopt;
  const toml::array* list = node->as_array();
  if (list == nullptr || !(list->empty() || list->is_homogeneous(toml::node_type::table))) {
    state_->report(path, fmt::format("expected sections [[{}]], found {}", path, found(*node)), *node);
    return 0;
  }
  return list->size();
}

void ConfigReader::enter_element(std::string_view name, std::size_t index) {
  const State::Section& section = state_->current();
  const toml::node* node = section.table == nullptr ? nullptr : section.table->get(name);
  const toml::array* list = node == nullptr ? nullptr : node->as_array();
  state_->open_section(fmt::format("{}[{}]", section.full(name), index),
                       list == nullptr ? nullptr : list->get(index)->as_table(), list == nullptr);
}

void ConfigReader::finish() const {
  std::vector<std::string> problems;
  for (const State::Section& section : state_->sections) {
    if (section.table == nullptr) continue;
    const bool chosen = State::is_chosen_by_set(section);
    std::vector<std::string> of_another = section.of_another;
    for (const auto& [key, node] : *section.table) {
      if (contains(section.known, key.str())) continue;
      if (chosen && !is_overridden(node)) {
        of_another.emplace_back(key.str());
      } else {
        problems.push_back(state_->unknown_key(section, key, node));
      }
    }
    if (!of_another.empty()) problems.push_back(state_->keys_of_another_choice(section, of_another));
  }
  problems.insert(problems.end(), state_->problems.begin(), state_->problems.end());
  if (!problems.empty()) throw UsageError(fmt::format("{}", fmt::join(problems, "\n")));
}

}  // namespace hstu
