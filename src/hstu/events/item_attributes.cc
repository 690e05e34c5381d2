#include "hstu/events/item_attributes.h"

#include <algorithm>
#include <array>

#include "hstu/base/error.h"
#include "hstu/base/progress.h"
#include "hstu/base/text.h"
#include "hstu/events/raw_checks.h"

namespace hstu {
namespace {

// Attributes are arrays indexed by item id: sparse ids (hashes) would need excessive memory.
constexpr std::int64_t kItemIdLimit = std::int64_t{1} << 31;
constexpr std::int64_t kAttributeBytes = 3 * 4;  // of one item: 4, and while the column grows its old copy

void read_mapping(const AttributeRule& rule, const Path& file, std::int64_t memory,
                  ItemAttribute& attribute) {
  const std::array columns = {rule.item_column, rule.value_column};
  const auto source = open_columns(file, columns);
  Progress progress("reading " + file.filename().string(), source->total_rows(), "rows");
  RawBatch batch;
  while (source->next(batch)) {
    const RawColumn &items = batch.columns[0], &values = batch.columns[1];
    check_no_null(batch, items);
    IntegerColumn item_ids, contents;
    item_ids.append(integers_of(batch, items, "item id"));
    contents.append(integers_of(batch, values, "attribute"));
    check_not_negative(batch, items, "item ids");
    check_not_negative(batch, values, "attribute values");
    assign_attribute(item_ids, contents, memory, attribute);
    progress.advance_to(batch.first_row + batch.rows);
  }
  progress.finish();
}

// Extends the attribute to the item id.
void reach(std::int64_t item, std::int64_t memory, ItemAttribute& attribute) {
  if (item < attribute.values.size()) return;
  if (item >= kItemIdLimit) {
    fail_usage("the attribute \"{}\": expected item ids below 2^31, found {}: renumber the items",
               attribute.name, item);
  }
  const std::int64_t bytes = (item + 1) * kAttributeBytes;
  if (bytes > memory) {
    fail_usage(
        "the attribute \"{}\" is indexed by item id and takes {} for item id {}, more than --memory allows "
        "({}): increase --memory or renumber the items",
        attribute.name, human_bytes(static_cast<double>(bytes)), item,
        human_bytes(static_cast<double>(memory)));
  }
  attribute.values.resize(item + 1);
}

}  // namespace

void assign_attribute(const IntegerColumn& items, const IntegerColumn& values, std::int64_t memory,
                      ItemAttribute& attribute) {
  if (items.size() == 0) return;
  reach(items.visit([](const auto& ids) { return std::int64_t{*std::max_element(ids.begin(), ids.end())}; }),
        memory, attribute);
  for (std::int64_t r = 0; r < items.size(); ++r) attribute.values.set(items[r], values[r]);
}

std::vector<ItemAttribute> read_mappings(const Schema& schema, const Path& input, std::int64_t memory) {
  std::vector<ItemAttribute> attributes;
  for (const AttributeRule& rule : schema.attributes) {
    attributes.push_back({.name = rule.name});
    if (!rule.file.empty()) read_mapping(rule, input / rule.file, memory, attributes.back());
  }
  return attributes;
}

void equalize_lengths(std::vector<ItemAttribute>& attributes) {
  std::int64_t longest = 0;
  for (const ItemAttribute& attribute : attributes) longest = std::max(longest, attribute.values.size());
  for (ItemAttribute& attribute : attributes) attribute.values.resize(longest);
}

}  // namespace hstu
