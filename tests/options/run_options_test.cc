#include <optional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "hstu/config/config_difference.h"
#include "hstu/kinds/kinds.h"
#include "hstu/options/options.h"

namespace hstu {
namespace {

// Gives key number `which` of described structs another value.
class ChangeOneKey final : public ConfigFields {
 public:
  explicit ChangeOneKey(std::size_t which) : which_(which) {}

 private:
  void visit(const Field& field) override {
    if (next_++ != which_) return;
    std::visit(
        [&](auto* const value) {
          using T = std::remove_pointer_t<decltype(value)>;
          if constexpr (std::is_same_v<T, bool>)
            *value = !*value;
          else if constexpr (std::is_arithmetic_v<T>)
            *value += 1;
          else if constexpr (std::is_same_v<T, std::string>)
            *value = field.rule.words.empty()             ? *value + "x"
                     : field.rule.words.front() == *value ? field.rule.words.back()
                                                          : field.rule.words.front();
          else if constexpr (std::is_same_v<T, Path>)
            *value += "x";
          else if constexpr (std::is_same_v<T, StringLists>)
            (*value)["x"] = {"y"};
          else
            value->emplace_back();
        },
        field.value);
  }
  void enter(std::string_view, std::string_view) override {}
  void leave() override {}
  bool enter_optional(std::string_view, bool present, std::string_view) override { return present; }
  std::optional<std::size_t> enter_list(std::string_view, std::size_t, std::string_view) override {
    return std::nullopt;
  }
  void enter_element(std::string_view, std::size_t) override {}

  std::size_t which_, next_ = 0;
};

// The trap: a key that is read into the member of another one, so that what it switches never runs.
TEST(RunOptions, EveryKeyChangesItselfAndNoOther) {
  for (const Kind& kind : kinds()) {
    RunOptions options;
    options.model.choose(kind.name);
    options.features.attributes.emplace_back();
    options.features.context.emplace_back();
    options.tables.by_name["item"] = {};
    const ConfigFlattener::Values before = config_values(options);
    EXPECT_GT(before.size(), 100u);
    for (std::size_t k = 0; k < before.size(); ++k) {
      if (before[k].first == "model.kind") continue;  // another one has other keys
      RunOptions changed = options;
      ChangeOneKey change(k);
      describe(change, changed);
      const std::vector<ConfigDifference> found = differences(before, config_values(changed));
      ASSERT_EQ(found.size(), 1u) << kind.name << ": " << before[k].first;
      EXPECT_EQ(found[0].key, before[k].first);
    }
  }
}

}  // namespace
}  // namespace hstu
