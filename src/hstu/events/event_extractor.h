// Applies a schema to raw columns: out come events.
#pragma once

#include <string>
#include <vector>

#include "hstu/dataset/event_table.h"
#include "hstu/events/column_source.h"
#include "hstu/events/schema.h"

namespace hstu {

class EventExtractor {
 public:
  // Keeps a reference to `schema`.
  explicit EventExtractor(const Schema& schema);

  // The columns of the event files that the schema uses, each once: what batches must hold, in this order.
  const std::vector<std::string>& columns() const { return columns_; }

  // An empty table with the schema's context columns.
  EventTable empty_table() const;

  // Appends the batch's events. Attributes that come from the event files are written into `attributes`,
  // which stand in the order of the schema. UsageError for a column of the wrong type; Error naming file,
  // column and row for a null, a negative id or a text that is not allowed.
  void extract(const RawBatch& batch, EventTable& table, std::vector<ItemAttribute>& attributes) const;

 private:
  void use(const std::string& column);
  const RawColumn& find(const RawBatch& batch, const std::string& column) const;
  void check_columns(const RawBatch& batch) const;
  std::vector<std::uint8_t> matching(const RawBatch& batch, const std::vector<Condition>& conditions) const;
  void append_actions(const RawBatch& batch, std::vector<std::uint8_t>& action) const;

  const Schema& schema_;
  std::vector<std::string> columns_;
  std::vector<std::string> nullable_;  // columns whose nulls count as 0
};

}  // namespace hstu
