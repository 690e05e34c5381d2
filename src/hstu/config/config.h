// Typed configuration: reads a TOML file and the `--set section.key=value` words that override it into plain
// structs. One definition of a key serves reading, defaults, checks, the resolved file and the reference
// page:
//
//   struct TrainingOptions {
//     std::int64_t max_steps = 0;
//     float lr = 1e-3f;
//     Decay decay = Decay::none;
//   };
//   void describe(ConfigFields& fields, TrainingOptions& o) {
//     fields.field("max_steps", o.max_steps, "stop after this many steps; 0: no limit", rule::at_least(0));
//     fields.field("lr", o.lr, "learning rate of the dense parameters", rule::positive());
//     fields.choice("decay", o.decay, kDecays, "after the warm-up");
//   }
//
//   struct Options {
//     TrainingOptions training;
//   };
//   void describe(ConfigFields& fields, Options& o) {
//     fields.section("training", o.training, "the loop over the data");
//   }
//
//   const Options options = load_config<Options>(path, set_words);  // set_words: {"training.lr=0.1", ...}
//
// A key that nothing describes is an error in every section, and so is one that nothing reads as the others
// are (read_if), so that no setting is ignored silently.
// In strings, ${NAME} and ${NAME:-default} are replaced by environment variables; "$${" is a literal "${".
// A key of another type may be written as such a string (max_steps = "${STEPS:-100}"). Of
// configurations nothing else reads the environment; comm/join.cc reads a launcher's variables.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "hstu/base/choice.h"
#include "hstu/base/files.h"

namespace hstu {

// A number that the program is to draw. Integers of TOML have 63 bits.
inline constexpr std::uint64_t kRandomNumber = std::numeric_limits<std::uint64_t>::max();

// The values that are allowed; for a list, those of each element.
struct Rule {
  bool required = false;
  bool or_integer = false;  // for a string: an integer may be written without quotes
  double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();
  bool low_excluded = false;
  std::vector<std::string> words = {};          // when not empty: the only values allowed
  void (*parse)(const std::string&) = nullptr;  // throws UsageError for a string that is not allowed
  bool distinct = false;                        // for a list: no element occurs twice
  bool or_random = false;                       // for a std::uint64_t: "random" is kRandomNumber

  std::string text() const;  // "> 0", "in [0, 1]", "one of a, b", or ""
};

namespace rule {
Rule positive();                                    // > 0
Rule at_least(double low);                          // >= low
Rule between(double low, double high);              // in [low, high]
Rule parsed_by(void (*parse)(const std::string&));  // throws UsageError
Rule required(Rule rule = {});                      // no default: the file must have the key
Rule or_integer(Rule rule);
Rule or_random();  // or_random alone
Rule distinct(Rule rule = {});
}  // namespace rule

// A table whose keys are the user's own: [allowed_texts] kind = ["view", "buy"].
using StringLists = std::map<std::string, std::vector<std::string>>;

using FieldPointer =
    std::variant<bool*, int*, std::int64_t*, std::uint64_t*, float*, double*, std::string*, Path*,
                 std::vector<std::int64_t>*, std::vector<double>*, std::vector<std::string>*, StringLists*>;

struct Field {
  std::string_view name;
  FieldPointer value;
  std::string_view doc;
  const Rule& rule;
};

// A visitor of the keys of options structs; argument-dependent lookup finds describe(ConfigFields&, T&).
class ConfigFields {
 public:
  virtual ~ConfigFields() = default;

  template <typename T>
  void field(std::string_view name, T& value, std::string_view doc, const Rule& rule = {}) {
    visit({name, &value, doc, rule});
  }

  // An enumeration, by the words of its table.
  template <typename Enum, std::size_t kCount>
  void choice(std::string_view name, Enum& value, const Choice<Enum> (&table)[kCount], std::string_view doc) {
    const Rule rule{.words = words_of(table)};
    std::string word = word_of(table, value);
    visit({name, &word, doc, rule});
    value = parse_word(table, word, name);
  }

  // The key `name` of the section, described before, decides which other keys the section has. `advice` says
  // what to do where the user chose it on top of a file that was written for another choice.
  virtual void decides(std::string_view /*name*/, std::string_view /*advice*/) {}

  // Of the key `name`, described before ("beta1" of this section, "loss.kind" of an inner one): with
  // `is_read` false nothing reads it, as the other keys are. Then it must have its default. `readers` ends
  // "the key is read ...": "with kind = \"adam\" or \"adamw\"".
  virtual void read_if(bool /*is_read*/, std::string_view /*name*/, std::string_view /*readers*/) {}

  // [name]
  template <typename T>
  void section(std::string_view name, T& options, std::string_view doc) {
    enter(name, doc);
    describe(*this, options);
    leave();
  }

  // [name], which may be missing; `options` then keeps its value.
  template <typename T>
  void optional_section(std::string_view name, std::optional<T>& options, std::string_view doc) {
    T value = options.value_or(T{});
    if (!enter_optional(name, options.has_value(), doc)) return;
    describe(*this, value);
    leave();
    options = std::move(value);
  }

  // [SECTION.NAME] for names that are the user's own: every section of the file that nothing described so
  // far. `example` is the name in the reference page.
  template <typename T>
  void named_sections(std::map<std::string, T>& sections, std::string_view example, std::string_view doc) {
    std::vector<std::string> names;
    names.reserve(sections.size());
    for (const auto& [name, options] : sections) names.push_back(name);
    for (const std::string& name : section_names(std::move(names), example)) {
      T unused;
      T& options = name == example ? unused : sections[name];
      enter(name, doc);
      describe(*this, options);
      leave();
    }
  }

  // [[name]], any number of times. A list in the file replaces the default list.
  template <typename T>
  void sections(std::string_view name, std::vector<T>& list, std::string_view doc) {
    if (const auto size = enter_list(name, list.size(), doc)) list.assign(*size, T{});
    for (std::size_t i = 0; i < list.size(); ++i) {
      enter_element(name, i);
      describe(*this, list[i]);
      leave();
    }
  }

 protected:
  virtual void visit(const Field& field) = 0;
  virtual void enter(std::string_view name, std::string_view doc) = 0;
  virtual void leave() = 0;
  // Enters the section and returns true if it is to be described; `present`: the options have a value.
  virtual bool enter_optional(std::string_view name, bool present, std::string_view doc);
  // The sections that named_sections() visits; `present`: those that the options have.
  virtual std::vector<std::string> section_names(std::vector<std::string> present,
                                                 std::string_view /*example*/) {
    return present;
  }
  // Returns the number of elements that the list must have, or nothing to visit its `size` elements.
  virtual std::optional<std::size_t> enter_list(std::string_view name, std::size_t size,
                                                std::string_view doc) = 0;
  virtual void enter_element(std::string_view name, std::size_t index) = 0;
};

// Whether keys that nothing reads (read_if) are problems. A run's own file has all keys, also those that an
// earlier version took: then only those of --set are.
enum class UnreadKeys { refused, taken };

// Fills described structs from TOML text. finish() reports all problems together.
class ConfigReader final : public ConfigFields {
 public:
  // `source` names the text in messages. Throws UsageError for text that is not TOML.
  ConfigReader(std::string_view text, std::string_view source, std::span<const std::string> overrides,
               UnreadKeys unread = UnreadKeys::refused);
  ~ConfigReader() override;
  // Throws UsageError listing every unknown key, wrong type, value out of range and missing key, with file
  // and line.
  void finish() const;

 private:
  void visit(const Field& field) override;
  void enter(std::string_view name, std::string_view doc) override;
  void leave() override;
  void decides(std::string_view name, std::string_view advice) override;
  void read_if(bool is_read, std::string_view name, std::string_view readers) override;
  bool enter_optional(std::string_view name, bool present, std::string_view doc) override;
  std::vector<std::string> section_names(std::vector<std::string> present, std::string_view example) override;
  std::optional<std::size_t> enter_list(std::string_view name, std::size_t size,
                                        std::string_view doc) override;
  void enter_element(std::string_view name, std::size_t index) override;

  struct State;
  std::unique_ptr<State> state_;
};

// Writes described structs as TOML that reads back to the same values, keys in the order of description.
class ConfigWriter final : public ConfigFields {
 public:
  std::string text() const;

 private:
  void visit(const Field& field) override;
  void enter(std::string_view name, std::string_view doc) override;
  void leave() override;
  std::optional<std::size_t> enter_list(std::string_view name, std::size_t size,
                                        std::string_view doc) override;
  void enter_element(std::string_view name, std::size_t index) override;
  void open(std::string_view name, bool element);

  struct Block {
    std::string header, body;
  };
  std::vector<Block> blocks_{{}};
  std::vector<std::pair<std::string, std::size_t>> path_{
      {"", 0}};  // dotted name and block of each open section
};

// Writes the reference page of described structs: one Markdown table per section.
class ConfigReference final : public ConfigFields {
 public:
  const std::string& text() const { return text_; }

 private:
  void visit(const Field& field) override;
  void enter(std::string_view name, std::string_view doc) override;
  void leave() override;
  bool enter_optional(std::string_view name, bool present, std::string_view doc) override;
  std::vector<std::string> section_names(std::vector<std::string> /*present*/,
                                         std::string_view example) override {
    return {std::string(example)};
  }
  std::optional<std::size_t> enter_list(std::string_view name, std::size_t size,
                                        std::string_view doc) override;
  void enter_element(std::string_view name, std::size_t index) override;

  std::vector<std::string> path_;
  std::string text_, list_doc_;
  bool in_table_ = false;
};

// A value as TOML writes it: numbers short and exact, strings quoted.
std::string toml_value(const FieldPointer& value);

// `text` as a TOML string; ${NAME} inside keeps its meaning.
std::string toml_quoted(std::string_view text);

template <typename Options>
Options parse_config(std::string_view text, std::string_view source,
                     std::span<const std::string> overrides = {}, UnreadKeys unread = UnreadKeys::refused) {
  Options options;
  ConfigReader reader(text, source, overrides, unread);
  describe(reader, options);
  reader.finish();
  return options;
}

// The text of a configuration file. Throws UsageError naming a file that does not exist.
std::string read_config_file(const Path& path);

// `overrides`: words "section.key=value"; the value is TOML, or a string without quotes.
template <typename Options>
Options load_config(const Path& path, std::span<const std::string> overrides = {},
                    UnreadKeys unread = UnreadKeys::refused) {
  return parse_config<Options>(read_config_file(path), path.string(), overrides, unread);
}

// The resolved configuration: every key with its value, defaults included.
template <typename Options>
std::string to_toml(Options options) {
  ConfigWriter writer;
  describe(writer, options);
  return writer.text();
}

// XXH3 128-bit hash of the text, 32 hexadecimal digits: config_hash(to_toml(options)) identifies a
// configuration.
std::string config_hash(std::string_view text);

template <typename Options>
std::string config_reference() {
  Options options;
  ConfigReference reference;
  describe(reference, options);
  return reference.text();
}

}  // namespace hstu
