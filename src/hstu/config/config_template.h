// A configuration file to fill in: every key of described structs with its meaning as a comment. Keys that
// have a default are comments themselves, so that a file keeps only what its author decided.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hstu/config/config.h"

namespace hstu {

class ConfigTemplate final : public ConfigFields {
 public:
  const std::string& text() const { return text_; }

 private:
  void visit(const Field& field) override;
  void enter(std::string_view name, std::string_view doc) override;
  void leave() override;
  std::optional<std::size_t> enter_list(std::string_view name, std::size_t size,
                                        std::string_view doc) override;
  void enter_element(std::string_view name, std::size_t index) override;

  std::vector<std::string> path_;
  std::string text_, list_doc_;
  int lists_ = 0;  // open lists: their elements are comments as a whole
};

// `text` as comment lines "# ..." of at most 110 characters.
std::string toml_comment(std::string_view text);

template <typename Options>
std::string config_template(Options options) {
  ConfigTemplate visitor;
  describe(visitor, options);
  return visitor.text();
}

}  // namespace hstu
