#include "hstu/events/item_attributes.h"

#include <algorithm>
#include <array>

#include "hstu/base/error.h"
#include "hstu/base/progress.h"
#include "hstu/events/raw_checks.h"

namespace hstu {
namespace {

// Attributes are arrays indexed by item id: sparse ids (hashes) would ask for absurd amounts of memory.
constexpr std::int64_t kItemIdLimit = std::int64_t{1} << 31;

void read_mapping(const AttributeRule& rule, const Path& file, ItemAttribute& attribute) {
  const std::array columns = {rule.item_column, rule.value_column};
  const auto source = open_columns(file, columns);
  Progress progress("reading " + file.filename().string(), source->total_rows(), "rows");
  RawBatch batch;
  while (source->next(batch)) {
    check_no_null(batch, batch.columns[0]);
    assign_attribute(batch, batch.columns[0], batch.columns[1], attribute);
    progress.advance_to(batch.first_row + batch.rows);
  }
  progress.finish();
}

}  // namespace

void assign_attribute(const RawBatch& batch, const RawColumn& items, const RawColumn& values,
                      ItemAttribute& attribute) {
  const auto ids = integers_of(batch, items, "item id");
  const auto contents = integers_of(batch, values, "attribute");
  if (ids.empty()) return;
  check_not_negative(batch, items, "item ids");
  check_not_negative(batch, values, "attribute values");
  const std::int64_t largest = *std::max_element(ids.begin(), ids.end());
  if (largest >= kItemIdLimit) {
    fail_usage(
        "{}: column \"{}\": expected item ids below 2^31 for the attribute \"{}\", found {}: renumber the "
        "items",
        batch.file, items.name, attribute.name, largest);
  }
  if (largest >= static_cast<std::int64_t>(attribute.values.size())) {
    attribute.values.resize(static_cast<std::size_t>(largest) + 1);
  }
  for (std::size_t r = 0; r < ids.size(); ++r)
    attribute.values[static_cast<std::size_t>(ids[r])] = contents[r];
}

std::vector<ItemAttribute> read_mappings(const Schema& schema, const Path& input) {
  std::vector<ItemAttribute> attributes;
  for (const AttributeRule& rule : schema.attributes) {
    attributes.push_back({.name = rule.name, .values = {}});
    if (!rule.file.empty()) read_mapping(rule, input / rule.file, attributes.back());
  }
  return attributes;
}

void equalize_lengths(std::vector<ItemAttribute>& attributes) {
  std::size_t longest = 0;
  for (const ItemAttribute& attribute : attributes) longest = std::max(longest, attribute.values.size());
  for (ItemAttribute& attribute : attributes) attribute.values.resize(longest);
}

}  // namespace hstu
