#include "hstu/predict/columns.h"

#include <map>

#include "hstu/base/calendar.h"
#include "hstu/base/error.h"
#include "hstu/base/floor_divide.h"
#include "hstu/base/text.h"
#include "hstu/dataset/names.h"

namespace hstu {
namespace {

constexpr std::string_view kSeparators = " ,";

std::int64_t steps_per_second(TimeStep step) {
  switch (step) {
    case TimeStep::milliseconds:
      return 1'000;
    case TimeStep::microseconds:
      return 1'000'000;
    case TimeStep::nanoseconds:
      return 1'000'000'000;
    case TimeStep::seconds:
      break;
  }
  return 1;
}

void check_unit(const CsvReader& rows, const TimeColumn& time, std::int64_t value, std::int64_t seconds) {
  const std::string unit{word_of(kTimeSteps, time.step)};
  if (const auto other = other_unit(value, unit))
    fail_usage("{}: with --time-unit {} the time {} is in the year {}, with --time-unit {} in {}: change it",
               rows.place(time.column), unit, value, calendar_year(seconds), other->unit, other->year);
}

}  // namespace

void ColumnNames::rename(const std::vector<std::string>& words) {
  const std::map<std::string, std::string*> names{{"request", &request}, {"user", &user},
                                                  {"time", &time},       {"item", &item},
                                                  {"action", &action},   {"candidates", &candidates}};
  std::vector<std::string> known;
  known.reserve(names.size());
  for (const auto& [name, unused] : names) known.push_back(name);
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos || equals + 1 == word.size())
      fail_usage("--columns: expected words such as user=uid, found \"{}\"", word);
    const std::string name = word.substr(0, equals);
    const auto found = names.find(name);
    if (found == names.end())
      fail_usage("--columns: there is no column \"{}\"{}", name, suggestion(name, known));
    *found->second = word.substr(equals + 1);
  }
}

std::int64_t seconds_of(const CsvReader& rows, const TimeColumn& time) {
  const std::string_view text = rows.field(time.column);
  if (const auto value = parse_number<std::int64_t>(text)) {
    const std::int64_t steps = steps_per_second(time.step);
    const std::int64_t seconds = floor_divide(*value, steps);
    if (time.since_1970) check_unit(rows, time, *value, seconds);
    return seconds;
  }
  const auto date = parse_iso_time(text);
  if (!date) {
    rows.refuse(time.column,
                fmt::format("expected a time, a whole number of at most 64 bits or ISO 8601 such "
                            "as 2024-05-01T12:30:00Z, found \"{}\"",
                            text));
  }
  if (!time.since_1970) {
    rows.refuse(time.column,
                fmt::format("the times of the histories do not count from 1970: expected a number, found the "
                            "date {}",
                            text));
  }
  return date->seconds;
}

std::int64_t read_id(const CsvReader& rows, std::size_t column, bool texts) {
  if (!texts) return rows.integer(column);
  if (rows.field(column).empty()) rows.refuse(column, "expected an id, found nothing");
  return id_of_text(rows.field(column));
}

void read_item(const CsvReader& rows, std::size_t column, bool texts, Items& items) {
  items.ids.push_back(read_id(rows, column, texts));
  if (texts) items.texts.emplace_back(rows.field(column));
}

void read_items(const CsvReader& rows, std::size_t column, bool texts, Items& items) {
  std::string_view rest = rows.field(column);
  if (rest.starts_with('[') && rest.ends_with(']')) rest = rest.substr(1, rest.size() - 2);
  while (true) {
    const std::size_t begin = rest.find_first_not_of(kSeparators);
    if (begin == std::string_view::npos) break;
    rest.remove_prefix(begin);
    const std::string_view word = rest.substr(0, rest.find_first_of(kSeparators));
    rest.remove_prefix(word.size());
    if (texts) {
      items.ids.push_back(id_of_text(word));
      items.texts.emplace_back(word);
      continue;
    }
    const auto number = parse_number<std::int64_t>(word);
    if (!number)
      rows.refuse(column, fmt::format("expected whole numbers separated by spaces, found \"{}\"", word));
    items.ids.push_back(*number);
  }
  if (items.ids.empty()) rows.refuse(column, "the list has no candidates");
}

}  // namespace hstu
