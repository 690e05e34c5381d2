#include "hstu/prepare/mistakes.h"

#include <array>

#include <fmt/format.h>

#include "hstu/base/text.h"
#include "hstu/events/calendar.h"
#include "hstu/suggestion/column_summary.h"

namespace hstu {
namespace {

std::string contents_of(const Schema& schema, const std::string& column, const std::vector<Path>& files) {
  const std::array columns{column};
  const std::vector<ColumnSummary> summaries =
      summarize_columns(files.front(), columns, event_options(schema));
  return summaries.empty() ? "nothing" : summaries.front().text();
}

std::string idle_text(const Schema& schema, const IdleCondition& idle, const std::vector<Path>& files) {
  std::vector<std::string> before;
  before.reserve(idle.before.size());
  for (const Condition& condition : idle.before)
    before.push_back(fmt::format("\"{}\"", to_string(condition)));
  return fmt::format("{}: no event {}satisfies \"{}\"; the column \"{}\" contains {}", idle.rule,
                     before.empty() ? "" : fmt::format("that satisfies {} ", fmt::join(before, " and ")),
                     to_string(idle.condition), idle.condition.column,
                     contents_of(schema, idle.condition.column, files));
}

void add_label_mistakes(const Schema& schema, const Manifest& manifest, std::vector<std::string>& mistakes) {
  const EventCounts& counts = manifest.counts;
  if (counts.rankable == 0) {
    mistakes.push_back(
        fmt::format("no event is rankable, so there is nothing to train on or to evaluate: change the "
                    "conditions of rankable{}",
                    manifest.split ? ", or the split (test_days, train_days)" : ""));
  } else if (counts.positives == 0 || counts.positives == counts.rankable) {
    mistakes.push_back(fmt::format(
        "{} of the {} rankable events has the action \"{}\" (label), and a model needs positives and "
        "negatives: change the label, its conditions or those of rankable",
        counts.positives == 0 ? "none" : "every one", with_separators(counts.rankable), schema.label));
  }
}

void add_null_words(const std::string& column, const char* kind, const NullWordCounts& counts,
                    std::vector<std::string>& mistakes) {
  for (const auto& [word, events] : counts) {
    mistakes.push_back(fmt::format(
        "column \"{}\": {} events have the {} id {}, which usually means that there is none; they are one {} "
        "now: if it means null, set nulls = ['{}'] in the schema, and drop_null = [\"{}\"] to leave these "
        "rows out",
        column, with_separators(events), kind, word, kind, word, column));
  }
}

void add_time_mistakes(const Schema& schema, const TimeRange& time, std::vector<std::string>& mistakes) {
  const std::int64_t first = calendar_year(time.min), last = calendar_year(time.max);
  if (schema.relative_time || schema.times == Times::kOrder ||
      (is_plausible_year(first) && is_plausible_year(last)))
    return;
  const std::string years = first == last ? fmt::format("of the year {}", first)
                                          : fmt::format("of the years {} to {}", first, last);
  mistakes.push_back(
      fmt::format("column \"{}\": the times are {}: correct them, or set relative_time = true if they do not "
                  "count from 1970",
                  schema.time, years));
}

}  // namespace

std::vector<std::string> mistakes_of(const Schema& schema, const std::vector<Path>& files,
                                     const StreamedLog& log, const Manifest& manifest) {
  std::vector<std::string> mistakes = log.remarks;
  add_null_words(schema.user, "user", log.user_nulls, mistakes);
  add_null_words(schema.item, "item", log.item_nulls, mistakes);
  for (const IdleCondition& idle : idle_conditions(schema, log.matches))
    mistakes.push_back(idle_text(schema, idle, files));
  if (!schema.unlabelled || manifest.counts.rankable == 0) add_label_mistakes(schema, manifest, mistakes);
  add_time_mistakes(schema, log.time, mistakes);
  return mistakes;
}

}  // namespace hstu
