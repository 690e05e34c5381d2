#include "hstu/events/event_extractor.h"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "hstu/base/contains.h"
#include "hstu/base/error.h"
#include "hstu/base/text.h"
#include "hstu/columns/raw_checks.h"
#include "hstu/events/calendar.h"
#include "hstu/events/event_weights.h"

namespace hstu {
namespace {

// Columns of CSV that are compared with numbers and used for nothing else. Others are integers if the schema
// says so, and texts otherwise.
std::vector<std::string> number_columns(const Schema& schema) {
  std::vector<std::string> others = {schema.user, schema.item, schema.time};  // the last one may be ""
  for (const ContextRule& rule : schema.context) others.push_back(rule.column);
  for (const AttributeRule& rule : schema.attributes) others.push_back(rule.value_column);
  for (const AllowedTexts& allowed : schema.allowed_texts) others.push_back(allowed.column);
  std::vector<std::string> numbers;
  const auto look = [&](const std::vector<Condition>& conditions) {
    for (const Condition& condition : conditions) {
      (parse_number<double>(condition.value) ? numbers : others).push_back(condition.column);
    }
  };
  if (!schema.weight.empty()) numbers.push_back(schema.weight);
  look(schema.rankable);
  look(schema.keep);
  for (const ActionRule& rule : schema.actions) look(rule.when);
  std::erase_if(numbers, [&](const std::string& column) { return contains(others, column); });
  return numbers;
}

}  // namespace

ReadOptions event_options(const Schema& schema) {
  ReadOptions options{.csv = schema.csv, .sequences = schema.sequences, .nulls = schema.nulls};
  if (options.csv) options.csv->numbers = number_columns(schema);
  for (const ContextRule& rule : schema.context) {
    if (rule.list == ListRule::first) options.lists.push_back(rule.column);
  }
  for (const AttributeRule& rule : schema.attributes) {
    if (rule.list == ListRule::first && rule.file.empty()) options.lists.push_back(rule.value_column);
  }
  return options;
}

ReadOptions mapping_options(const Schema& schema, const AttributeRule& rule) {
  ReadOptions options{.csv = schema.csv, .nulls = schema.nulls};
  if (options.csv) options.csv->columns.clear();  // those of event files
  if (rule.list == ListRule::first) options.lists.push_back(rule.value_column);
  return options;
}

std::int64_t LogChunk::bytes() const {
  constexpr std::int64_t kTextBytes = 32;  // of a text, besides its characters
  std::int64_t sum = events.bytes() + attribute_items.bytes() + std::ssize(attribute_times) * 8;
  for (const IntegerColumn& column : attributes) sum += column.bytes();
  const auto add = [&](const std::string& text) { sum += kTextBytes + std::ssize(text); };
  for (const auto* columns : {&context_texts, &attribute_texts}) {
    for (const CodedTexts& texts : *columns) {
      if (texts) std::for_each(texts->begin(), texts->end(), add);
    }
  }
  for (const NamedIds* names : {&user_names, &item_names}) {
    for (const auto& [id, name] : *names) add(name);
  }
  return sum;
}

EventExtractor::EventExtractor(const Schema& schema)
    : schema_(schema), options_(event_options(schema)), filter_(schema) {
  for (const std::string* column : {&schema.user, &schema.time, &schema.item})
    if (!column->empty()) use(*column);
  if (!schema.weight.empty()) use(schema.weight);
  for (const ContextRule& rule : schema.context) use(rule.column);
  for (const ActionRule& rule : schema.actions) {
    for (const Condition& condition : rule.when) use(condition.column);
  }
  for (const Condition& condition : schema.rankable) use(condition.column);
  for (const AllowedTexts& allowed : schema.allowed_texts) use(allowed.column);
  for (const std::string& column : filter_.columns()) use(column);
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
  return times_of(batch, column, schema_.time_unit).seconds;
}

void EventExtractor::check_columns(const RawBatch& batch) const {
  for (const RawColumn& column : batch.columns) {
    if (contains(nullable_, column.name)) continue;
    const bool id = column.name == schema_.user || column.name == schema_.item || column.name == schema_.time;
    check_no_null(batch, column,
                  fmt::format("{}drop_null = [\"{}\"] in the schema leaves out such rows",
                              id ? "every event needs a user, an item and a time: "
                                 : "to permit them, list the column in null_as_zero; ",
                              column.name));
  }
  for (const AllowedTexts& allowed : schema_.allowed_texts) {
    check_texts(batch, find(batch, allowed.column), allowed.texts);
  }
}

// Of the columns that become integers of the dataset.
void EventExtractor::make_integers(RawBatch& batch) const {
  const auto whole = [&](const std::string& name, const char* role) {
    const auto position = std::find(columns_.begin(), columns_.end(), name) - columns_.begin();
    make_whole(batch, batch.columns.at(static_cast<std::size_t>(position)), role);
  };
  whole(schema_.user, "user id");
  whole(schema_.item, "item id");
  for (const ContextRule& rule : schema_.context) whole(rule.column, "context");
  for (const AttributeRule& rule : schema_.attributes) {
    if (rule.file.empty()) whole(rule.value_column, "attribute");
  }
}

void EventExtractor::check_years(const RawBatch& batch, const RawColumn& column,
                                 std::span<const std::int64_t> seconds) const {
  if (schema_.relative_time) return;
  const auto [first, last] = std::minmax_element(seconds.begin(), seconds.end());
  check_time_unit(batch, column, first - seconds.begin(), last - seconds.begin(), *last,
                  word_of(schema_.time_unit));
}

std::vector<std::uint8_t> EventExtractor::matching(const RawBatch& batch,
                                                   const std::vector<Condition>& conditions,
                                                   std::vector<std::int64_t>& matches) const {
  std::vector<std::uint8_t> mask(static_cast<std::size_t>(batch.rows), 1);
  for (const Condition& condition : conditions) {
    keep_matching(condition, find(batch, condition.column), batch.file, mask);
    matches.push_back(std::reduce(mask.begin(), mask.end(), std::int64_t{0}));
  }
  return mask;
}

void EventExtractor::append_actions(const RawBatch& batch, LogChunk& chunk) const {
  std::vector<std::uint8_t>& action = chunk.events.action;
  const std::size_t first = action.size();
  action.resize(first + static_cast<std::size_t>(batch.rows));
  const auto set_bit = [&](const std::vector<Condition>& conditions, std::uint8_t bit) {
    const std::vector<std::uint8_t> mask = matching(batch, conditions, chunk.matches.emplace_back());
    for (std::size_t r = 0; r < mask.size(); ++r)
      action[first + r] |= static_cast<std::uint8_t>(mask[r] * bit);
  };
  for (const ActionRule& rule : schema_.actions) set_bit(rule.when, rule.bit);
  set_bit(schema_.rankable, kRankableBit);
}

void EventExtractor::append_contexts(const RawBatch& batch, LogChunk& chunk) const {
  for (const ContextRule& rule : schema_.context) {
    const RawColumn& column = find(batch, rule.column);
    IntegerColumn& values = chunk.events.context.emplace_back();
    chunk.context_texts.push_back(append_values(batch, column, "context", values));
    if (rule.null_value == 0) continue;
    for (std::size_t r = 0; r < column.nulls.size(); ++r)
      if (column.nulls[r]) values.set(static_cast<std::int64_t>(r), rule.null_value);
  }
}

// Behind the contexts, as EventTable says.
void EventExtractor::append_weights(const RawBatch& batch, LogChunk& chunk) const {
  if (!has_weights(schema_)) return;
  const RawColumn* const column = schema_.weight.empty() ? nullptr : &find(batch, schema_.weight);
  chunk.events.context.emplace_back().append(
      event_weights(schema_, batch, column, std::span(chunk.events.action)));
}

void EventExtractor::append_attributes(const RawBatch& batch, const EventTimes& times,
                                       LogChunk& chunk) const {
  for (const AttributeRule& rule : schema_.attributes) {
    if (!rule.file.empty()) continue;
    const RawColumn& values = find(batch, rule.value_column);
    chunk.attribute_texts.push_back(
        append_values(batch, values, "attribute", chunk.attributes.emplace_back()));
    if (!chunk.attribute_texts.back()) check_not_negative(batch, values, "attribute values");
  }
  if (chunk.attributes.empty()) return;
  chunk.attribute_items = chunk.events.item;
  chunk.attribute_times.reserve(times.seconds.size());
  for (std::size_t i = 0; i < times.seconds.size(); ++i) {
    chunk.attribute_times.push_back(
        in_nanoseconds(times.seconds[i], times.nanoseconds.empty() ? 0 : times.nanoseconds[i]));
  }
}

// Differences of times must fit into 64 bits. Smallest and largest numbers are what programs write for no
// time.
void EventExtractor::check_times(const RawBatch& batch, const RawColumn& column,
                                 std::span<const std::int64_t> seconds) {
  constexpr std::int64_t kMost = std::int64_t{1} << 53;
  const auto found = std::find_if(seconds.begin(), seconds.end(),
                                  [](std::int64_t time) { return time <= -kMost || time >= kMost; });
  if (found == seconds.end()) return;
  fail(
      "{}: expected a time within 2^53 seconds of 1970, found {} s: remove the row, or leave such rows out "
      "by a "
      "condition of keep",
      place_of(batch, column, found - seconds.begin()), *found);
}

// Of a log without times, 0 for every event: the order of the rows decides.
EventTimes EventExtractor::times_in(const RawBatch& batch) const {
  if (schema_.times == Times::kOrder)
    return {.seconds = std::vector<std::int64_t>(static_cast<std::size_t>(batch.rows)), .nanoseconds = {}};
  const RawColumn& time = find(batch, schema_.time);
  EventTimes times = times_of(batch, time, schema_.time_unit);
  check_times(batch, time, times.seconds);
  check_years(batch, time, times.seconds);
  return times;
}

LogChunk EventExtractor::extract(RawBatch& batch) const {
  LogChunk chunk;
  chunk.dropped = filter_.apply(batch);
  if (batch.rows == 0) return chunk;
  check_columns(batch);
  make_integers(batch);
  EventTable& events = chunk.events;
  const RawColumn &user = find(batch, schema_.user), &item = find(batch, schema_.item);
  chunk.user_names = append_ids(batch, user, "user id", events.user);
  chunk.item_names = append_ids(batch, item, "item id", events.item);
  count_null_words(user, chunk.user_nulls);
  count_null_words(item, chunk.item_nulls);
  check_below(batch, user, schema_.user_rows, "user ids below user_rows");
  check_below(batch, item, schema_.item_rows, "item ids below item_rows");
  if (!contains(schema_.keep_names, "user")) chunk.user_names = {};
  if (!contains(schema_.keep_names, "item")) chunk.item_names = {};
  const EventTimes times = times_in(batch);
  const auto [first, last] = std::minmax_element(times.seconds.begin(), times.seconds.end());
  chunk.time = {.min = *first, .max = *last};
  events.time.append(times.seconds);
  events.nanoseconds.append(times.nanoseconds);
  append_contexts(batch, chunk);
  append_actions(batch, chunk);
  append_weights(batch, chunk);
  append_attributes(batch, times, chunk);
  return chunk;
}

}  // namespace hstu
