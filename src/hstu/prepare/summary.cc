#include "hstu/prepare/summary.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "hstu/base/text.h"
#include "hstu/dataset/dataset.h"
#include "hstu/dataset/writer.h"
#include "hstu/events/calendar.h"
#include "hstu/prepare/coverage.h"

namespace hstu {
namespace {

std::string share(std::int64_t part, std::int64_t whole) {
  const double percent = whole > 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0;
  return fmt::format("{} ({:.1f} %)", with_separators(part), percent);
}

// Events of an action: the last running count of each segment, and the events after it.
std::int64_t count_action(const Dataset& dataset, std::size_t action) {
  const std::uint8_t bit = dataset.manifest().actions[action].bit;
  const std::vector<PoolCounts> counts = dataset.pool_counts();
  std::int64_t count = 0;
  for (std::size_t s = 0; s < counts.size(); ++s) {
    const std::int64_t block = counts[s].end_block() - 1, end = dataset.segments()[s].end();
    count += counts[s].before(block, static_cast<std::int64_t>(action));
    for (std::int64_t p = block * kPoolBlock; p < end; ++p)
      count += (dataset.action()[static_cast<std::size_t>(p)] & bit) != 0 ? 1 : 0;
  }
  return count;
}

std::string actions_text(const Dataset& dataset) {
  std::vector<std::string> texts;
  const Manifest& manifest = dataset.manifest();
  for (std::size_t a = 0; a < manifest.actions.size(); ++a) {
    texts.push_back(fmt::format("{} {}", manifest.actions[a].name,
                                share(count_action(dataset, a), manifest.counts.events)));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

// `kind`: "user" or "item"; hashes of texts have no meaningful range.
std::string range_text(const Manifest& manifest, const char* kind, const char* file) {
  if (manifest.hashed.contains(kind)) return "hashes of texts";
  const ColumnInfo& column = manifest.columns.at(file);
  return fmt::format("{} to {}", column.min.value_or(0), column.max.value_or(0));
}

// Dates too, if the times count from 1970.
std::string time_text(const TimeRange& time) {
  const double days = static_cast<double>(time.max - time.min) / 86400;
  std::string dates;
  if (is_plausible_year(calendar_year(time.min)) && is_plausible_year(calendar_year(time.max))) {
    dates = fmt::format("{} to {}, ", calendar_date(time.min), calendar_date(time.max));
  }
  return fmt::format("{} to {} s ({}{:.1f} days)", time.min, time.max, dates, days);
}

std::string time_text(const Manifest& manifest) {
  if (manifest.times == Times::kSeconds) return time_text(manifest.time);
  return fmt::format("none: places in the order of the log, 0 to {}", manifest.time.max);
}

std::string ties_text(const Ties& ties, const EventCounts& counts) {
  return fmt::format(
      "{} neighbouring events of a user at the same time, {} users with a tied last pair{}",
      share(ties.neighbours, counts.events - counts.users), share(ties.last_pairs, counts.users),
      ties.seed ? fmt::format(", in random order (seed {})", *ties.seed) : ", in the order of the log");
}

// Of the rankable events, whose losses have them.
std::string weights_text(const Dataset& dataset) {
  std::int64_t events = 0;
  double sum = 0, least = std::numeric_limits<double>::infinity(), most = 0;
  for (std::int64_t u = 0; u < dataset.users(); ++u) {
    dataset.events_of(u).each([&](std::int64_t p) {
      if ((dataset.action()[static_cast<std::size_t>(p)] & kRankableBit) == 0) return;
      const auto weight = static_cast<double>(dataset.weight(p));
      ++events;
      sum += weight;
      least = std::min(least, weight);
      most = std::max(most, weight);
    });
  }
  if (events == 0) return "of no rankable event";
  return fmt::format("{:.4g} to {:.4g}, mean {:.4g}, of the rankable", least, most,
                     sum / static_cast<double>(events));
}

using Rows = std::vector<std::vector<std::string>>;

void add_filters(const FilterReport& filters, Rows& rows) {
  const EventFilters& rules = filters.rules;
  if (rules.duplicates != Duplicates::kKeep) {
    const bool counted = rules.duplicates == Duplicates::kCount;
    rows.push_back(
        {"duplicates",
         fmt::format(
             "{} events {}{}", with_separators(filters.duplicates),
             rules.duplicates_of == SameEvent::kItem ? "of an item that their user has another event of"
                                                     : "that are equal to another one",
             counted ? "; all were kept"
                     : fmt::format(" left; the {} was kept", word_of(kDuplicates, rules.duplicates)))});
  }
  const auto left = [](const LeftOut& out) {
    return fmt::format("{} users and {} events left", with_separators(out.users),
                       with_separators(out.events));
  };
  if (rules.longest_user > 0)
    rows.push_back({"longest user", fmt::format("{} events: {}", rules.longest_user, left(filters.longest))});
  if (rules.core > 0) {
    rows.push_back({"core", fmt::format("{} events: {} items, {}, in {} rounds{}", rules.core,
                                        with_separators(filters.core.items), left(filters.core),
                                        filters.core_rounds, rules.core_once ? " (once)" : "")});
  }
  if (rules.shortest_user > 0)
    rows.push_back(
        {"shortest user", fmt::format("{} events: {}", rules.shortest_user, left(filters.shortest))});
}

}  // namespace

void print_dataset_summary(const Path& folder) {
  const Dataset dataset(folder);
  const Manifest& manifest = dataset.manifest();
  const EventCounts& counts = manifest.counts;
  const auto bytes = static_cast<double>(dataset_bytes(manifest));
  Rows rows = {{"dataset", folder.string()},
               {"users", with_separators(counts.users)},
               {"items", with_separators(counts.items)},
               {"events", with_separators(counts.events)},
               {"actions", actions_text(dataset)},
               {"rankable", share(counts.rankable, counts.events)},
               {"positives", fmt::format("{} of the rankable", share(counts.positives, counts.rankable))},
               {"ids", fmt::format("users {}, items {}", range_text(manifest, "user", kUserIdsFile),
                                   range_text(manifest, "item", kItemFile))},
               {"time", time_text(manifest)},
               {"size", fmt::format("{}, {:.1f} bytes per event", human_bytes(bytes),
                                    bytes / static_cast<double>(counts.events))}};
  if (manifest.weighted) rows.push_back({"weights", weights_text(dataset)});
  if (manifest.ties) rows.push_back({"ties", ties_text(*manifest.ties, counts)});
  if (manifest.filters) add_filters(*manifest.filters, rows);
  bool sampled = false;
  for (const Coverage& coverage : coverage_of(dataset, &sampled)) {
    rows.push_back({coverage.attribute,
                    fmt::format("{} of the items{} have a value", share(coverage.mapped, coverage.items),
                                sampled ? " of some events" : "")});
  }
  if (manifest.test_events) {
    rows.push_back({"held out", fmt::format("{} events of the test interval",
                                            with_separators(manifest.test_events->events))});
  }
  fmt::print("{}", table(rows));
  if (counts.rankable > 0 && counts.positives == counts.rankable) {
    fmt::print(
        "The log has positives alone: every event to rank is {0}. A model learns from items that are drawn "
        "beside them (data.negatives), or ranks all items: hstu config --template --for {1} or --template "
        "retrieval --for {1} proposes how.\n",
        manifest.label, folder.string());
  }
}

}  // namespace hstu
