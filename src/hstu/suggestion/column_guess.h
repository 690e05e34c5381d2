// Guesses what the columns of a log mean, from their names and the values of some rows.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hstu/events/schema.h"
#include "hstu/suggestion/column_summary.h"

namespace hstu {

// A column and why it was chosen ("by its name").
struct GuessedColumn {
  const ColumnSummary* column = nullptr;
  std::string reason;
};

struct GuessedTime : GuessedColumn {
  std::string_view unit = "s";
  bool relative = false;  // in no unit a plausible year
};

struct GuessedActions {
  std::string reason;
  std::vector<ActionRule> actions;            // with bits
  std::string label;                          // one of them
  std::vector<const ColumnSummary*> columns;  // that the conditions use
};

// The pointers are into `columns`. Nothing: no column is suitable.
std::optional<GuessedColumn> guess_user(const std::vector<ColumnSummary>& columns);
std::optional<GuessedColumn> guess_item(const std::vector<ColumnSummary>& columns, const GuessedColumn& user);
std::optional<GuessedTime> guess_time(const std::vector<ColumnSummary>& columns);
// One action for each frequent text of a column of event types, for each column of 0 and 1, or for high and
// low ratings, or for each text of the first column of few texts that is not among `used`; without any of
// these, one action that every event has.
GuessedActions guess_actions(const std::vector<ColumnSummary>& columns,
                             const std::vector<const ColumnSummary*>& used);

}  // namespace hstu
