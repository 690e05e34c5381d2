#include "hstu/prepare/append.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "hstu/base/contains.h"
#include "hstu/base/error.h"
#include "hstu/base/npy.h"
#include "hstu/base/text.h"
#include "hstu/dataset/column_writer.h"

namespace hstu {
namespace {

using Ids = std::vector<std::int64_t>;  // ascending, each once

void sort_distinct(Ids& ids) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
}

Ids united(const Ids& a, std::span<const std::int64_t> b) {
  Ids all;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(all));
  return all;
}

// In memory for the distinct ids and a block.
Ids distinct(const MappedColumn& column) {
  constexpr std::int64_t kBlock = std::int64_t{1} << 22;
  Ids all, block;
  for (std::int64_t begin = 0; begin < column.size(); begin += kBlock) {
    const std::int64_t end = std::min(begin + kBlock, column.size());
    block.clear();
    for (std::int64_t p = begin; p < end; ++p) block.push_back(column[p]);
    sort_distinct(block);
    all = united(all, block);
  }
  return all;
}

// The items of all events, from the segments' lists. Only the first append reads events for it.
Ids known_items(const Dataset& dataset) {
  if (dataset.segments().size() == 1) return distinct(dataset.item());
  Ids items;
  for (std::size_t s = 1; s < dataset.segments().size(); ++s)
    items = united(items, NpyColumn<std::int64_t>(dataset.segments()[s].folder() / kNewItemsFile).values());
  return items;
}

// Events of one user in the segment, against those before it.
class UserComparison {
 public:
  UserComparison(const Dataset& dataset, AppendReport& report) : dataset_(dataset), report_(report) {}

  void compare(std::int64_t id, PositionRange events) {
    std::vector<PositionRange> earlier;
    for (std::size_t s = 0; s + 1 < dataset_.segments().size(); ++s)
      if (const PositionRange range = dataset_.segments()[s].events_of_id(id); range.size() > 0)
        earlier.push_back(range);
    if (earlier.empty()) {
      ++report_.new_users;
      return;
    }
    std::int64_t last = dataset_.time()[earlier.front().end - 1];
    for (const PositionRange& range : earlier) last = std::max(last, dataset_.time()[range.end - 1]);
    for (std::int64_t p = events.begin; p < events.end && dataset_.time()[p] <= last; ++p) {
      report_.late += dataset_.time()[p] < last ? 1 : 0;
      const bool known = std::any_of(earlier.begin(), earlier.end(),
                                     [&](const PositionRange& range) { return has(range, p); });
      report_.duplicates += known ? 1 : 0;
    }
  }

 private:
  // Whether one of the events of `range` equals the one at `position`.
  bool has(PositionRange range, std::int64_t position) const {
    const std::int64_t time = dataset_.time()[position];
    const auto action = dataset_.action();
    std::int64_t first = dataset_.time().visit([&](const auto* times) {
      return std::lower_bound(times + range.begin, times + range.end, time,
                              [](const auto value, std::int64_t wanted) {
                                return static_cast<std::int64_t>(value) < wanted;
                              }) -
             times;
    });
    for (; first < range.end && dataset_.time()[first] == time; ++first) {
      if (dataset_.item()[first] == dataset_.item()[position] &&
          action[static_cast<std::size_t>(first)] == action[static_cast<std::size_t>(position)])
        return true;
    }
    return false;
  }

  const Dataset& dataset_;
  AppendReport& report_;
};

}  // namespace

Extension extension_of(const Dataset& dataset, const Path& staged, Manifest& segment) {
  const Ids items = distinct(MappedColumn(staged / kItemFile)), known = known_items(dataset);
  Ids added;
  std::set_difference(items.begin(), items.end(), known.begin(), known.end(), std::back_inserter(added));
  ColumnWriter writer(staged / kNewItemsFile, IntegerColumn::Width::k8Bytes);
  writer.append(dataset.segments().size() == 1 ? united(known, items) : added);
  segment.columns[kNewItemsFile] = writer.close();

  const NpyColumn<std::int64_t> users(staged / kUserIdsFile);
  const auto ids = dataset.user_ids();
  const auto new_users = std::count_if(users.values().begin(), users.values().end(), [&](std::int64_t id) {
    return !std::binary_search(ids.begin(), ids.end(), id);
  });
  const EventCounts &before = dataset.manifest().counts, &own = segment.counts;
  return {.dataset = dataset.manifest().id,
          .counts = {.events = before.events + own.events,
                     .users = before.users + new_users,
                     .items = std::ssize(known) + std::ssize(added),
                     .rankable = before.rankable + own.rankable,
                     .positives = before.positives + own.positives}};
}

namespace {

std::vector<std::string> without(std::vector<std::string> rules, const std::vector<std::string>& others) {
  std::erase_if(rules, [&](const std::string& rule) { return contains(others, rule); });
  return rules;
}

}  // namespace

AppendReport report_of(const Dataset& dataset) {
  const std::vector<SegmentFolder>& folders = dataset.folders();
  AppendReport report{.segment = folders.back().manifest};
  // A dataset of an earlier version has none, and may have been made by any.
  if (const std::vector<std::string>& rules = folders[folders.size() - 2].manifest.rules; !rules.empty()) {
    report.rules_before = without(rules, report.segment.rules);
    report.rules_now = without(report.segment.rules, rules);
  }
  UserComparison comparison(dataset, report);
  const Segment& added = dataset.segments().back();
  for (std::int64_t u = 0; u < added.users(); ++u)
    comparison.compare(added.user_ids()[static_cast<std::size_t>(u)], added.events_of(u));
  return report;
}

bool has_same_events(const Manifest& one, const Manifest& other) {
  const auto columns = [](std::map<std::string, ColumnInfo> all) {
    all.erase(kNewItemsFile);
    return all;
  };
  return columns(one.columns) == columns(other.columns);
}

void check_continues(const Manifest& before, const Path& dataset, const Manifest& segment) {
  using Words = std::vector<std::string>;
  const auto expect = [&](const char* what, const Words& expected, const Words& found) {
    if (std::set(expected.begin(), expected.end()) == std::set(found.begin(), found.end())) return;
    const auto list = [](const Words& words) {
      return words.empty() ? std::string("none") : fmt::format("{}", fmt::join(words, ", "));
    };
    fail_usage("--append {}: {}: expected {}, found {}: append with the schema of the dataset",
               dataset.string(), what, list(expected), list(found));
  };
  const auto bits = [](const Manifest& manifest) {
    Words words;
    for (const ActionBit& action : manifest.actions)
      words.push_back(fmt::format("{} = {}", action.name, action.bit));
    return words;
  };
  const auto texts = [](const Manifest& manifest) {
    Words words;
    for (const auto& [of, collisions] : manifest.hashed) words.push_back(of);
    return words;
  };
  expect("actions and their bits", bits(before), bits(segment));
  expect("label", {before.label}, {segment.label});
  const auto times = [](const Manifest& manifest) {
    return Words{manifest.times == Times::kOrder ? "an order" : "seconds"};
  };
  expect("times", times(before), times(segment));
  expect("pools", before.pools, segment.pools);
  expect("context columns", before.context, segment.context);
  const auto weights = [](const Manifest& manifest) {
    return Words{manifest.weighted ? "of each event" : "none"};
  };
  expect("weights", weights(before), weights(segment));
  expect("item attributes", before.attributes, segment.attributes);
  expect("ids that are texts", texts(before), texts(segment));
  expect("columns of texts whose names are kept", before.names, segment.names);
}

}  // namespace hstu
