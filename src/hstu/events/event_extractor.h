// Applies a schema to raw columns and returns events.
#pragma once

#include <string>
#include <vector>

#include "hstu/dataset/event_table.h"
#include "hstu/dataset/manifest.h"
#include "hstu/events/column_source.h"
#include "hstu/events/schema.h"

namespace hstu {

// Some consecutive events of a log.
struct LogChunk {
  EventTable events;
  std::vector<IntegerColumn> attributes;  // of the events: values of attributes that the log itself contains
  IntegerColumn attribute_items;          // the events' items, if there are such attributes
  TimeRange time;                         // of the events
};

class EventExtractor {
 public:
  // Keeps a reference to `schema`. UsageError if null_as_zero names a column that no rule uses.
  explicit EventExtractor(const Schema& schema);

  // The columns of the event files that the schema uses, each once. Batches must have them in this order.
  const std::vector<std::string>& columns() const { return columns_; }

  const Schema& schema() const { return schema_; }

  // The events of a non-empty batch. UsageError for a column of the wrong type; Error naming file,
  // column and row for a null, a negative id or a text that is not allowed. Thread-safe.
  LogChunk extract(const RawBatch& batch) const;

  // The times of a batch in seconds, from its time column.
  std::vector<std::int64_t> seconds(const RawBatch& batch, const RawColumn& column) const;

 private:
  void use(const std::string& column);
  const RawColumn& find(const RawBatch& batch, const std::string& column) const;
  void check_nullable() const;
  void check_columns(const RawBatch& batch) const;
  std::vector<std::uint8_t> matching(const RawBatch& batch, const std::vector<Condition>& conditions) const;
  void append_actions(const RawBatch& batch, std::vector<std::uint8_t>& action) const;

  const Schema& schema_;
  std::vector<std::string> columns_;
  std::vector<std::string> nullable_;  // columns whose nulls count as 0
};

}  // namespace hstu
