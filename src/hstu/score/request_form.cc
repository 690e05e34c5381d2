#include "hstu/score/request_form.h"

#include <algorithm>
#include <utility>

#include "hstu/base/contains.h"
#include "hstu/base/error.h"
#include "hstu/base/text.h"

namespace hstu {

RequestForm::RequestForm(const Dataset& schema, std::vector<bool> of_requests, std::vector<bool> of_events)
    : schema_(schema),
      of_requests_(std::move(of_requests)),
      of_events_(std::move(of_events)),
      codes_(schema.manifest().context.size()) {
  const auto open = [&](const std::string& of, std::optional<Names>& names) {
    const std::vector<std::string>& known = manifest().names;
    if (contains(known, of)) names.emplace(schema.folder(), manifest(), of);
  };
  for (std::size_t c = 0; c < codes_.size(); ++c) open("context_" + manifest().context[c], codes_[c]);
  open("item", items_);
}

std::uint8_t RequestForm::known_bits() const {
  std::uint8_t bits = 0;
  for (const ActionBit& action : manifest().actions) bits = static_cast<std::uint8_t>(bits | action.bit);
  return bits;
}

std::uint8_t RequestForm::action_bits(std::string_view names) const {
  std::vector<std::string> known;
  for (const ActionBit& action : manifest().actions) known.push_back(action.name);
  std::uint8_t bits = 0;
  for (const std::string& name : split(names, '|')) {
    const auto found = std::find(known.begin(), known.end(), name);
    if (found == known.end()) fail_usage("there is no action \"{}\"{}", name, suggestion(name, known));
    const auto place = static_cast<std::size_t>(found - known.begin());
    bits = static_cast<std::uint8_t>(bits | manifest().actions[place].bit);
  }
  return bits;
}

std::size_t RequestForm::column(std::string_view name) const {
  const std::vector<std::string>& names = manifest().context;
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end())
    fail_usage("there is no context column \"{}\"{}", name, suggestion(std::string(name), names));
  return static_cast<std::size_t>(found - names.begin());
}

std::optional<std::int64_t> RequestForm::code_of(std::size_t column, std::string_view text) const {
  const std::optional<Names>& codes = codes_[column];
  if (!codes)
    fail_usage("the context column \"{}\" has numbers, found the text \"{}\"", manifest().context[column],
               text);
  return codes->id_of(text);
}

void RequestForm::check_codes(std::size_t column, std::span<const std::int64_t> values) const {
  if (!has_texts(column)) return;
  const std::int64_t most = codes_[column]->size();
  for (const std::int64_t value : values)
    if (value < 0 || value > most)
      fail_usage("the context column \"{}\" has texts: expected a code of 0 to {}, found {}",
                 manifest().context[column], most, value);
}

std::optional<std::string_view> RequestForm::item_name(std::int64_t item) const {
  return items_ ? items_->name_of(item) : std::nullopt;
}

}  // namespace hstu
