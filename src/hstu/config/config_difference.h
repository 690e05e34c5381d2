// The differences between two configurations, by key.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hstu/config/config.h"

namespace hstu {

struct ConfigDifference {
  std::string key;            // "training.epochs", "features.context[1].rows"
  std::string before, after;  // as TOML writes them; "" for a missing element of a list
};

// Every key of described structs with its value, in the order of description.
class ConfigFlattener final : public ConfigFields {
 public:
  using Values = std::vector<std::pair<std::string, std::string>>;
  const Values& values() const { return values_; }

 private:
  void visit(const Field& field) override;
  void enter(std::string_view name, std::string_view doc) override;
  void leave() override;
  std::optional<std::size_t> enter_list(std::string_view name, std::size_t size,
                                        std::string_view doc) override;
  void enter_element(std::string_view name, std::size_t index) override;

  std::vector<std::string> prefix_{""};  // of each open section
  Values values_;
};

std::vector<ConfigDifference> differences(const ConfigFlattener::Values& before,
                                          const ConfigFlattener::Values& after);

template <typename Options>
ConfigFlattener::Values config_values(Options options) {
  ConfigFlattener flattener;
  describe(flattener, options);
  return flattener.values();
}

// Throws UsageError with all differences, with both values, whose keys are not named in `allowed`. A name is
// that of a key, of a section ("evaluation") or of a list ("features.context"). UsageError also for a name
// that matches no key of `known`. `what` names the owner of the configuration `before`.
void check_differences(const std::vector<ConfigDifference>& differences, std::span<const std::string> allowed,
                       const ConfigFlattener::Values& known, std::string_view what);

}  // namespace hstu
