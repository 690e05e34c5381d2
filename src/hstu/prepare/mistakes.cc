#include "hstu/prepare/mistakes.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "hstu/base/text.h"
#include "hstu/base/text_form.h"
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

bool has_conditions(const Schema& schema, const std::string& name) {
  return std::any_of(schema.actions.begin(), schema.actions.end(),
                     [&](const ActionRule& action) { return action.name == name && !action.when.empty(); });
}

void add_label_mistakes(const Schema& schema, const Manifest& manifest, std::vector<std::string>& mistakes) {
  const EventCounts& counts = manifest.counts;
  if (counts.rankable == 0) {
    mistakes.push_back(
        fmt::format("no event is rankable, so there is nothing to train on or to evaluate: change the "
                    "conditions of rankable{}",
                    manifest.split ? ", or the split (test_days, train_days)" : ""));
  } else if (counts.positives == 0) {
    mistakes.push_back(fmt::format(
        "none of the {} rankable events has the action \"{}\" (label), and a model needs positives: "
        "change the label, its conditions or those of rankable",
        with_separators(counts.rankable), schema.label));
  } else if (counts.positives == counts.rankable && has_conditions(schema, schema.label)) {
    mistakes.push_back(fmt::format(
        "every one of the {} rankable events has the action \"{}\" (label), though it has conditions: "
        "correct the label, its conditions or those of rankable, if some events are negatives",
        with_separators(counts.rankable), schema.label));
  }
}

// Each different text of a column gets an embedding of its own.
void add_text_mistake(const std::string& column, std::span<const std::string> texts,
                      std::vector<std::string>& mistakes) {
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  const std::string found = unlike_categories(views);
  if (found.empty()) return;
  mistakes.push_back(
      fmt::format("column \"{}\": its {} different texts are {}, and each becomes a category of its own: {}, "
                  "or leave it out",
                  column, with_separators(std::ssize(texts)), found,
                  found.starts_with("lists") ? "give each part a column of its own"
                                             : "write classes of it into the log, such as its tenths"));
}

void add_text_mistakes(const Schema& schema, const StreamedLog& log, std::vector<std::string>& mistakes) {
  for (std::size_t c = 0; c < schema.context.size(); ++c)
    if (log.contexts[c]) add_text_mistake(schema.context[c].column, log.contexts[c]->names(), mistakes);
  for (std::size_t a = 0; a < schema.attributes.size(); ++a)
    if (const auto& names = log.attributes.names[a])
      add_text_mistake(schema.attributes[a].value_column, *names, mistakes);
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
  add_text_mistakes(schema, log, mistakes);
  return mistakes;
}

}  // namespace hstu
