#include "hstu/events/event_extractor.h"

#include <algorithm>

#include "hstu/base/error.h"
#include "hstu/base/text.h"
#include "hstu/events/floor_divide.h"
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

bool contains(const std::vector<std::string>& list, const std::string& word) {
  return std::find(list.begin(), list.end(), word) != list.end();
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
  check_nullable();
  nullable_ = schema.null_as_zero;
  for (const AttributeRule& rule : schema.attributes) {
    if (!rule.file.empty() || contains(columns_, rule.value_column)) continue;
    use(rule.value_column);
    nullable_.push_back(rule.value_column);  // items without an attribute are allowed
  }
}

void EventExtractor::check_nullable() const {
  std::vector<std::string> known = columns_;
  for (const AttributeRule& rule : schema_.attributes) known.push_back(rule.value_column);
  for (const std::string& column : schema_.null_as_zero) {
    if (!contains(known, column)) {
      fail_usage("{}: null_as_zero: nothing uses a column \"{}\"{}", schema_.name, column,
                 suggestion(column, known));
    }
  }
}

void EventExtractor::use(const std::string& column) {
  if (!contains(columns_, column)) columns_.push_back(column);
}

const RawColumn& EventExtractor::find(const RawBatch& batch, const std::string& column) const {
  const auto position = std::find(columns_.begin(), columns_.end(), column) - columns_.begin();
  return batch.columns.at(static_cast<std::size_t>(position));
}

std::vector<std::int64_t> EventExtractor::seconds(const RawBatch& batch, const RawColumn& column) const {
  if (column.kind == RawColumn::Kind::kSeconds) return column.integers;
  const auto values = integers_of(batch, column, "time");
  std::vector<std::int64_t> seconds(values.begin(), values.end());
  const std::int64_t divisor = units_per_second(schema_.time_unit);
  if (divisor == 1) return seconds;
  for (std::int64_t& value : seconds) value = floor_divide(value, divisor);
  return seconds;
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

LogChunk EventExtractor::extract(const RawBatch& batch) const {
  check_columns(batch);
  LogChunk chunk;
  EventTable& events = chunk.events;
  const RawColumn& user = find(batch, schema_.user);
  const RawColumn& item = find(batch, schema_.item);
  events.user.append(integers_of(batch, user, "user id"));
  events.item.append(integers_of(batch, item, "item id"));
  check_not_negative(batch, user, "user ids");
  check_not_negative(batch, item, "item ids");
  const std::vector<std::int64_t> times = seconds(batch, find(batch, schema_.time));
  const auto [first, last] = std::minmax_element(times.begin(), times.end());
  chunk.time = {.min = *first, .max = *last};
  events.time.append(times);
  for (const ContextRule& rule : schema_.context) {
    events.context.emplace_back().append(integers_of(batch, find(batch, rule.column), "context"));
  }
  append_actions(batch, events.action);
  for (const AttributeRule& rule : schema_.attributes) {
    if (!rule.file.empty()) continue;
    const RawColumn& values = find(batch, rule.value_column);
    chunk.attributes.emplace_back().append(integers_of(batch, values, "attribute"));
    check_not_negative(batch, values, "attribute values");
  }
  if (!chunk.attributes.empty()) chunk.attribute_items = events.item;
  return chunk;
}

}  // namespace hstu
