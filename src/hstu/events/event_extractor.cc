#include "hstu/events/event_extractor.h"

#include <algorithm>

#include "hstu/base/error.h"
#include "hstu/events/item_attributes.h"
#include "hstu/events/raw_checks.h"

namespace hstu {
namespace {

std::int64_t units_per_second(TimeUnit unit) {
  switch (unit) {
    case TimeUnit::kSeconds:
      return 1;
    case TimeUnit::kMilliseconds:
      return 1'000;
    case TimeUnit::kMicroseconds:
      return 1'000'000;
  }
  return 1;
}

// Rounds down, so that times before 1970 keep their order and distance.
std::int64_t floor_divide(std::int64_t value, std::int64_t divisor) {
  return value / divisor - (value % divisor < 0 ? 1 : 0);
}

bool contains(const std::vector<std::string>& list, const std::string& word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

void append_times(const RawBatch& batch, const RawColumn& column, TimeUnit unit, IntegerColumn& times) {
  if (column.kind == RawColumn::Kind::kSeconds) return times.append(column.integers);
  const auto values = integers_of(batch, column, "time");
  const std::int64_t divisor = units_per_second(unit);
  if (divisor == 1) return times.append(values);
  std::vector<std::int64_t> seconds(values.size());
  std::transform(values.begin(), values.end(), seconds.begin(),
                 [&](std::int64_t value) { return floor_divide(value, divisor); });
  times.append(seconds);
}

}  // namespace

EventExtractor::EventExtractor(const Schema& schema) : schema_(schema) {
  for (const std::string* column : {&schema.user, &schema.time, &schema.item}) use(*column);
  for (const ContextRule& rule : schema.context) use(rule.column);
  for (const ActionRule& rule : schema.actions) {
    for (const Condition& condition : rule.when) use(condition.column);
  }
  for (const Condition& condition : schema.rankable) use(condition.column);
  for (const AllowedTexts& allowed : schema.allowed_texts) use(allowed.column);
  nullable_ = schema.null_as_zero;
  for (const AttributeRule& rule : schema.attributes) {
    if (!rule.file.empty() || contains(columns_, rule.value_column)) continue;
    use(rule.value_column);
    nullable_.push_back(rule.value_column);  // An item without an attribute is nothing unusual.
  }
}

void EventExtractor::use(const std::string& column) {
  if (!contains(columns_, column)) columns_.push_back(column);
}

const RawColumn& EventExtractor::find(const RawBatch& batch, const std::string& column) const {
  const auto position = std::find(columns_.begin(), columns_.end(), column) - columns_.begin();
  return batch.columns.at(static_cast<std::size_t>(position));
}

EventTable EventExtractor::empty_table() const {
  EventTable table;
  table.context.resize(schema_.context.size());
  return table;
}

void EventExtractor::check_columns(const RawBatch& batch) const {
  for (const RawColumn& column : batch.columns) {
    if (!contains(nullable_, column.name)) check_no_null(batch, column);
  }
  for (const AllowedTexts& allowed : schema_.allowed_texts) {
    check_texts(batch, find(batch, allowed.column), allowed.texts);
  }
}

std::vector<std::uint8_t> EventExtractor::matching(const RawBatch& batch,
                                                   const std::vector<Condition>& conditions) const {
  std::vector<std::uint8_t> mask(static_cast<std::size_t>(batch.rows), 1);
  for (const Condition& condition : conditions) {
    keep_matching(condition, find(batch, condition.column), batch.file, mask);
  }
  return mask;
}

void EventExtractor::append_actions(const RawBatch& batch, std::vector<std::uint8_t>& action) const {
  const std::size_t first = action.size();
  action.resize(first + static_cast<std::size_t>(batch.rows));
  const auto set_bit = [&](const std::vector<Condition>& conditions, std::uint8_t bit) {
    const std::vector<std::uint8_t> mask = matching(batch, conditions);
    for (std::size_t r = 0; r < mask.size(); ++r)
      action[first + r] |= static_cast<std::uint8_t>(mask[r] * bit);
  };
  for (const ActionRule& rule : schema_.actions) set_bit(rule.when, rule.bit);
  set_bit(schema_.rankable, kRankableBit);
}

void EventExtractor::extract(const RawBatch& batch, EventTable& table,
                             std::vector<ItemAttribute>& attributes) const {
  check_columns(batch);
  const RawColumn& user = find(batch, schema_.user);
  const RawColumn& item = find(batch, schema_.item);
  table.user.append(integers_of(batch, user, "user id"));
  table.item.append(integers_of(batch, item, "item id"));
  check_not_negative(batch, user, "user ids");
  check_not_negative(batch, item, "item ids");
  append_times(batch, find(batch, schema_.time), schema_.time_unit, table.time);
  for (std::size_t c = 0; c < table.context.size(); ++c) {
    table.context[c].append(integers_of(batch, find(batch, schema_.context[c].column), "context"));
  }
  append_actions(batch, table.action);
  for (std::size_t a = 0; a < schema_.attributes.size(); ++a) {
    const AttributeRule& rule = schema_.attributes[a];
    if (rule.file.empty()) assign_attribute(batch, item, find(batch, rule.value_column), attributes[a]);
  }
}

}  // namespace hstu
