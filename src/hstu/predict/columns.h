// The columns of tables with requests, events and items.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hstu/base/choice.h"
#include "hstu/predict/csv_reader.h"

namespace hstu {

// Of integer times.
enum class TimeStep { seconds, milliseconds, microseconds, nanoseconds };
inline constexpr Choice<TimeStep> kTimeSteps[] = {{"s", TimeStep::seconds},
                                                  {"ms", TimeStep::milliseconds},
                                                  {"us", TimeStep::microseconds},
                                                  {"ns", TimeStep::nanoseconds}};

// The names of columns, for files in which they have others than these.
struct ColumnNames {
  std::string request = "request", user = "user", time = "time", item = "item", candidates = "candidates",
              action = "action";
  TimeStep time_step = TimeStep::seconds;

  // Reads words "user=uid". Throws UsageError for other words and for names that are no column here.
  void rename(const std::vector<std::string>& words);
};

// A column of times: whole numbers in a unit, or texts in ISO 8601.
struct TimeColumn {
  std::size_t column = 0;
  TimeStep step = TimeStep::seconds;
  bool since_1970 = true;  // false: the times of the histories count from another moment
};

// The time of the current row in seconds, rounded down. Throws Error naming line and column of a text that is
// no time, UsageError for a number that is plausible in another unit alone, as hstu prepare does.
std::int64_t seconds_of(const CsvReader& rows, const TimeColumn& time);

// Items to score. Texts are those of the table where ids are hashes of texts; otherwise there are none.
struct Items {
  std::vector<std::int64_t> ids;
  std::vector<std::string> texts;

  void clear() {
    ids.clear();
    texts.clear();
  }
};

// An id: a whole number, or a text, whose hash is the id (dataset/names.h). Throws Error naming line and
// column for anything else.
std::int64_t read_id(const CsvReader& rows, std::size_t column, bool texts);

// Adds the item of a field, or the items of a list: separated by spaces or commas, with or without [ ] around
// them. Throws Error naming line and column for anything else and for an empty list.
void read_item(const CsvReader& rows, std::size_t column, bool texts, Items& items);
void read_items(const CsvReader& rows, std::size_t column, bool texts, Items& items);

}  // namespace hstu
