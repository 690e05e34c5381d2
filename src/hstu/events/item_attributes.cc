#include "hstu/events/item_attributes.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/base/progress.h"
#include "hstu/base/text.h"
#include "hstu/columns/raw_checks.h"

namespace hstu {
namespace {

// Attributes are arrays indexed by item id: sparse ids would need excessive memory.
constexpr std::int64_t kItemIdLimit = std::int64_t{1} << 31;
constexpr std::int64_t kAttributeBytes = 3 * 4;  // of one item: 4, and while the column grows its old copy
constexpr std::int64_t kTableBytes = 64;         // of one item in the table of hashed ids, about

}  // namespace

ItemAttributes::ItemAttributes(const Schema& schema, bool hashed, std::int64_t memory, Dictionaries known)
    : schema_(schema),
      hashed_(hashed),
      memory_(memory),
      known_(std::move(known)),
      vocabularies_(schema.attributes.size()) {
  for (const AttributeRule& rule : schema.attributes) attributes_.push_back({.name = rule.name});
}

void ItemAttributes::read_mappings(const Path& input) {
  for (std::size_t a = 0; a < attributes_.size(); ++a) {
    const AttributeRule& rule = schema_.attributes[a];
    if (!rule.file.empty()) read_mapping(rule, input / rule.file, a);
  }
}

void ItemAttributes::read_mapping(const AttributeRule& rule, const Path& file, std::size_t attribute) {
  const std::array columns = {rule.item_column, rule.value_column};
  const auto source = open_columns(file, columns, mapping_options(schema_, rule));
  if (source->is_text(0) != hashed_) {
    fail_usage("{}: column \"{}\": expected {} for the item id, as in the log, found {}", file.string(),
               rule.item_column, hashed_ ? "texts" : "integers", hashed_ ? "integers" : "texts");
  }
  Progress progress("reading " + file.filename().string(), source->total_rows(), "rows");
  RawBatch batch;
  while (source->next(batch)) {
    make_whole(batch, batch.columns[0], "item id");
    make_whole(batch, batch.columns[1], "attribute");
    const RawColumn &items = batch.columns[0], &values = batch.columns[1];
    check_no_null(batch, items, "remove the row: a mapping needs an item in each");
    IntegerColumn item_ids, contents;
    append_ids(batch, items, "item id", item_ids);
    const CodedTexts texts = append_values(batch, values, "attribute", contents);
    if (!texts) check_not_negative(batch, values, "attribute values");
    const std::vector<std::int64_t> rows = rows_of(item_ids);
    const std::vector<std::int64_t> codes = values_of(attribute, contents, texts);
    ItemAttribute& to = attributes_[attribute];
    if (!rows.empty()) reach(*std::max_element(rows.begin(), rows.end()), to);
    for (std::size_t r = 0; r < rows.size(); ++r) to.values.set(rows[r], codes[r]);
    progress.advance_to(batch.first_row + batch.rows);
  }
  progress.finish();
  if (const std::string remark = source->remark(); !remark.empty()) remarks_.push_back(remark);
}

void ItemAttributes::see(const LogChunk& chunk, std::optional<std::int64_t> end) {
  if (chunk.attributes.empty()) return;
  // The events that give the values, in the order of the log.
  std::vector<std::uint8_t> mask(chunk.attribute_times.size());
  const std::int64_t limit = end ? in_nanoseconds(*end, 0) : std::numeric_limits<std::int64_t>::max();
  std::transform(chunk.attribute_times.begin(), chunk.attribute_times.end(), mask.begin(),
                 [&](std::int64_t time) { return !end || time < limit ? 1 : 0; });
  IntegerColumn items = chunk.attribute_items;
  items.keep(mask);
  if (items.size() == 0) return;
  const std::vector<std::int64_t> rows = rows_of(items);
  const auto last = static_cast<std::size_t>(*std::max_element(rows.begin(), rows.end()));
  for (std::size_t a = 0; a < attributes_.size(); ++a) {
    if (schema_.attributes[a].file.empty()) reach(static_cast<std::int64_t>(last), attributes_[a]);
  }
  if (last >= latest_.size()) latest_.resize(last + 1, std::numeric_limits<std::int64_t>::min());

  std::vector<std::uint8_t> newer(rows.size());
  for (std::size_t r = 0, event = 0; event < mask.size(); ++event) {
    if (mask[event] == 0) continue;
    std::int64_t& latest = latest_[static_cast<std::size_t>(rows[r])];
    newer[r] = chunk.attribute_times[event] >= latest ? 1 : 0;
    if (newer[r] != 0) latest = chunk.attribute_times[event];
    ++r;
  }
  for (std::size_t a = 0, from = 0; a < attributes_.size(); ++a) {
    if (!schema_.attributes[a].file.empty()) continue;
    IntegerColumn values = chunk.attributes[from];
    values.keep(mask);
    const std::vector<std::int64_t> codes = values_of(a, values, chunk.attribute_texts[from]);
    for (std::size_t r = 0; r < rows.size(); ++r) {
      if (newer[r] != 0) attributes_[a].values.set(rows[r], codes[r]);
    }
    ++from;
  }
}

std::vector<std::int64_t> ItemAttributes::rows_of(const IntegerColumn& items) {
  std::vector<std::int64_t> rows = items.integers();
  if (!hashed_) return rows;
  for (std::int64_t& row : rows)
    row = rows_.try_emplace(row, static_cast<std::int64_t>(rows_.size())).first->second;
  const auto bytes = static_cast<std::int64_t>(rows_.size()) * kTableBytes;
  if (bytes > memory_) {
    fail_usage("attributes of {} items take more than --memory allows ({}): increase --memory",
               with_separators(static_cast<std::int64_t>(rows_.size())),
               human_bytes(static_cast<double>(memory_)));
  }
  return rows;
}

// Only texts that occur get a code.
std::vector<std::int64_t> ItemAttributes::values_of(std::size_t attribute, const IntegerColumn& values,
                                                    const CodedTexts& texts) {
  if (!texts) return values.integers();
  std::optional<Vocabulary>& vocabulary = vocabularies_[attribute];
  const std::string& name = attributes_[attribute].name;
  if (!vocabulary)
    vocabulary.emplace(fmt::format("the attribute \"{}\"", name), memory_, known_["attribute_" + name]);
  return vocabulary->translate(values.integers(), *texts);
}

// Extends the attribute to the row.
void ItemAttributes::reach(std::int64_t row, ItemAttribute& attribute) const {
  if (row < attribute.values.size()) return;
  if (row >= kItemIdLimit) {
    fail_usage("the attribute \"{}\": expected item ids below 2^31, found {}: renumber the items",
               attribute.name, row);
  }
  const std::int64_t bytes = (row + 1) * kAttributeBytes;
  if (bytes > memory_) {
    fail_usage(
        "the attribute \"{}\" is indexed by item id and takes {} for item id {}, more than --memory allows "
        "({}): increase --memory or renumber the items",
        attribute.name, human_bytes(static_cast<double>(bytes)), row,
        human_bytes(static_cast<double>(memory_)));
  }
  attribute.values.resize(row + 1);
}

ItemAttributes::Result ItemAttributes::take() {
  Result result;
  result.remarks = std::move(remarks_);
  result.attributes = std::move(attributes_);
  auto longest = static_cast<std::int64_t>(rows_.size());
  for (const ItemAttribute& attribute : result.attributes)
    longest = std::max(longest, attribute.values.size());
  for (ItemAttribute& attribute : result.attributes) attribute.values.resize(longest);
  for (const auto& vocabulary : vocabularies_)
    result.names.push_back(vocabulary ? std::optional(vocabulary->names()) : std::nullopt);
  if (hashed_) sort_items(result);
  return result;
}

void ItemAttributes::sort_items(Result& result) const {
  std::vector<std::pair<std::int64_t, std::int64_t>> sorted(rows_.begin(), rows_.end());
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::uint32_t> order;
  order.reserve(sorted.size());
  result.items.reserve(sorted.size());
  for (const auto& [item, row] : sorted) {
    result.items.push_back(item);
    order.push_back(static_cast<std::uint32_t>(row));
  }
  for (ItemAttribute& attribute : result.attributes) attribute.values = attribute.values.gather(order);
}

std::vector<ItemAttribute> read_mappings(const Schema& schema, const Path& input, std::int64_t memory) {
  ItemAttributes attributes(schema, false, memory);
  attributes.read_mappings(input);
  return attributes.take().attributes;
}

}  // namespace hstu
