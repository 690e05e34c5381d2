// Applies a schema to raw columns and returns events.
#pragma once

#include <string>
#include <vector>

#include "hstu/columns/column_source.h"
#include "hstu/columns/null_words.h"
#include "hstu/columns/raw_values.h"
#include "hstu/dataset/event_table.h"
#include "hstu/dataset/manifest.h"
#include "hstu/events/row_filter.h"
#include "hstu/events/rule_matches.h"
#include "hstu/events/schema.h"

namespace hstu {

// Some consecutive events of a log.
struct LogChunk {
  EventTable events;
  std::vector<IntegerColumn> attributes;  // of the events: values of attributes that the log itself contains
  IntegerColumn attribute_items;          // the events' items, if there are such attributes
  std::vector<std::int64_t>
      attribute_times;  // the events' times (in_nanoseconds), if there are such attributes
  TimeRange time;       // of the events
  RuleMatches matches;  // of the events
  // Of columns of texts: the events and attributes have the chunk's own codes.
  std::vector<CodedTexts> context_texts, attribute_texts;
  NamedIds user_names, item_names;        // of ids that are texts, if the schema keeps them
  std::vector<std::string> remarks;       // warnings about the file; such a chunk has no events
  NullWordCounts user_nulls, item_nulls;  // events whose id is a word for null
  DroppedRows dropped;                    // rows that are no events

  std::int64_t bytes() const;  // approximately
};

// How to read the schema's event files, and an attribute's mapping file.
ReadOptions event_options(const Schema& schema);
ReadOptions mapping_options(const Schema& schema, const AttributeRule& rule);

class EventExtractor {
 public:
  // Keeps a reference to `schema`. UsageError if null_as_zero names a column that no rule uses.
  explicit EventExtractor(const Schema& schema);

  // The columns of the event files that the schema uses, each once. Batches must have them in this order.
  const std::vector<std::string>& columns() const { return columns_; }

  const Schema& schema() const { return schema_; }

  // The events of a non-empty batch, from which rows are left out as the schema says: maybe all, and then the
  // chunk has no events. UsageError for a column of the wrong type; Error naming file,
  // column and row for a null, a negative id, an id beyond the declared rows or a text that is not allowed;
  // UsageError for a time unit that another one would make plausible (calendar.h). Thread-safe.
  LogChunk extract(RawBatch& batch) const;

  const ReadOptions& options() const { return options_; }
  const RowFilter& filter() const { return filter_; }

  // The times of a batch in seconds, from its time column.
  std::vector<std::int64_t> seconds(const RawBatch& batch, const RawColumn& column) const;

 private:
  void use(const std::string& column);
  EventTimes times_in(const RawBatch& batch) const;
  const RawColumn& find(const RawBatch& batch, const std::string& column) const;
  void check_nullable() const;
  void check_columns(const RawBatch& batch) const;
  void make_integers(RawBatch& batch) const;
  static void check_times(const RawBatch& batch, const RawColumn& column,
                          std::span<const std::int64_t> seconds);
  void check_years(const RawBatch& batch, const RawColumn& column,
                   std::span<const std::int64_t> seconds) const;
  std::vector<std::uint8_t> matching(const RawBatch& batch, const std::vector<Condition>& conditions,
                                     std::vector<std::int64_t>& matches) const;
  void append_actions(const RawBatch& batch, LogChunk& chunk) const;

  void append_contexts(const RawBatch& batch, LogChunk& chunk) const;
  void append_weights(const RawBatch& batch, LogChunk& chunk) const;
  void append_attributes(const RawBatch& batch, const EventTimes& times, LogChunk& chunk) const;

  const Schema& schema_;
  ReadOptions options_;
  RowFilter filter_;
  std::vector<std::string> columns_;
  std::vector<std::string> nullable_;  // columns whose nulls count as 0
};

}  // namespace hstu
