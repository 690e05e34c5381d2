#include "hstu/plan/table_tiers.h"

#include <algorithm>
#include <vector>

#include "hstu/base/text.h"
#include "hstu/options/table_options.h"

namespace hstu {
namespace {

using Table = MemoryPlan::Table;

// A cache of fewer rows would stop a run whose largest step has a few more ids than the plan saw.
constexpr std::int64_t kStepsInACache = 2;

std::int64_t least_cache(const Table& table) {
  return std::min(table.bytes, kStepsInACache * table.step_bytes);
}

void place(RunOptions& options, const Table& table, TableTier to, std::int64_t cache_bytes = 0) {
  TableSection& section = options.tables.by_name[table.name];
  section.place = word_of(kTableTiers, to);
  constexpr std::int64_t kMiB = 1 << 20;
  if (cache_bytes >= kMiB)
    section.device_memory = fmt::format("{}MiB", cache_bytes / kMiB);
  else if (cache_bytes > 0)
    section.device_memory = std::to_string(cache_bytes);
}

bool is_automatic(const RunOptions& options, const TableSection& section) {
  return place_of(options, section) == TableTier::automatic;
}

RunOptions all_on_device(const RunOptions& options) {
  RunOptions placed = options;
  for (auto& [name, section] : placed.tables.by_name)
    if (is_automatic(options, section)) section.place = word_of(kTableTiers, TableTier::device);
  if (is_automatic(options, {})) placed.tables.place = TableTier::device;
  return placed;
}

// TableSet::share_over().
bool can_leave_the_device(const Table& table, int ranks) {
  return ranks == 1 || table.form != TableRanks::copy;
}

}  // namespace

RunOptions with_places(const RunOptions& options, const MemoryPlan& plan, std::int64_t room) {
  RunOptions placed = all_on_device(options);
  std::vector<const Table*> tables;   // with place = "auto"
  std::int64_t bytes = 0, least = 0;  // of those that have no place yet
  for (const Table& table : plan.tables) {
    if (table.place != TableTier::automatic || !can_leave_the_device(table, plan.ranks)) continue;
    tables.push_back(&table);
    bytes += table.bytes;
    least += least_cache(table);
  }
  if (plan.total() <= room) return placed;
  std::sort(tables.begin(), tables.end(), [](const Table* a, const Table* b) {
    return std::pair(a->bytes, a->name) < std::pair(b->bytes, b->name);
  });
  std::int64_t left = room - (plan.total() - bytes);
  auto next = tables.begin();
  for (; next != tables.end() && (*next)->bytes <= left - (least - least_cache(**next)); ++next) {
    place(placed, **next, TableTier::device);
    left -= (*next)->bytes;
    bytes -= (*next)->bytes;
    least -= least_cache(**next);
  }
  for (; next != tables.end(); ++next) {
    const double share = static_cast<double>((*next)->bytes) / static_cast<double>(bytes);
    const auto cache = static_cast<std::int64_t>(share * static_cast<double>(left));
    const bool fits = cache > 0 && cache >= least_cache(**next);
    place(placed, **next, fits ? TableTier::cache : TableTier::host, fits ? cache : 0);
  }
  return placed;
}

RunOptions with_places(const RunOptions& options, const PlannedDevice& device, int ranks) {
  const auto& sections = options.tables.by_name;
  const bool any = is_automatic(options, {}) ||
                   std::any_of(sections.begin(), sections.end(),
                               [&](const auto& section) { return is_automatic(options, section.second); });
  if (!any || device.device.is_host() || device.memory_bytes == 0) return all_on_device(options);
  return with_places(options, plan_memory(options, device.device, ranks), usable_bytes(device));
}

}  // namespace hstu
