#include "hstu/embedding/row_visits.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "hstu/rows/unique.h"

namespace hstu {
namespace {

std::int64_t greatest(std::int64_t value, Communicator& comm) {
  const std::vector<std::int64_t> all = comm.all_gather(std::span<const std::int64_t>(&value, 1));
  return *std::max_element(all.begin(), all.end());
}

}  // namespace

void RowVisits::add(std::size_t t, std::span<const std::int64_t> ids,
                    std::span<const std::int64_t> occurrences, std::span<const std::int64_t> slots,
                    std::span<const std::int64_t> values) {
  if (!tables_[t].has_limits()) return;
  Visits& visits = mine_[t];
  if (tables_[t].config().limits.evict == Evict::custom)
    visits.values.insert(visits.values.end(), values.begin(), values.end());
  visits.is_distinct = visits.ids.empty();
  visits.slots.insert(visits.slots.end(), slots.begin(), slots.end());
  visits.ids.insert(visits.ids.end(), ids.begin(), ids.end());
  visits.occurrences.insert(visits.occurrences.end(), occurrences.begin(), occurrences.end());
}

RowVisits::Visits RowVisits::of_all_ranks(const RowOwners& owners, Visits mine, bool with_values,
                                          Communicator& comm) {
  if (comm.size() == 1) return mine;
  if (!owners.by_row()) {
    return {{comm.all_gather(std::span<const std::int64_t>(mine.ids)),
             comm.all_gather(std::span<const std::int64_t>(mine.occurrences)),
             {},
             comm.all_gather(std::span<const std::int64_t>(mine.values))},
            false};
  }
  std::vector<std::vector<std::int64_t>> by_owner(static_cast<std::size_t>(comm.size()));
  for (std::size_t i = 0; i < mine.ids.size(); ++i) {
    auto& to = by_owner[static_cast<std::size_t>(owners.owner(mine.ids[i]))];
    to.push_back(mine.ids[i]);
    to.push_back(mine.occurrences[i]);
    if (with_values) to.push_back(mine.values[i]);
  }
  std::vector<std::int64_t> send, counts;
  for (const auto& to : by_owner) {
    send.insert(send.end(), to.begin(), to.end());
    counts.push_back(static_cast<std::int64_t>(to.size()));
  }
  const std::vector<std::int64_t> received = comm.all_to_all(std::span<const std::int64_t>(send), counts);
  Visits owned;
  owned.is_distinct = false;
  for (std::size_t i = 0; i < received.size();) {
    owned.ids.push_back(received[i++]);
    owned.occurrences.push_back(received[i++]);
    if (with_values) owned.values.push_back(received[i++]);
  }
  return owned;
}

// Each id once: its occurrences added up, and the largest of its values.
RowVisits::Visits RowVisits::merged(const Visits& visits) {
  UniqueIds distinct = unique(visits.ids);
  const std::size_t n = distinct.ids.size();
  Visits merged;
  merged.ids = std::move(distinct.ids);
  merged.occurrences.assign(n, 0);
  if (!visits.values.empty()) merged.values.assign(n, std::numeric_limits<std::int64_t>::min());
  for (std::size_t i = 0; i < distinct.index.size(); ++i) {
    const auto place = static_cast<std::size_t>(distinct.index[i]);
    merged.occurrences[place] += visits.occurrences[i];
    if (!merged.values.empty()) merged.values[place] = std::max(merged.values[place], visits.values[i]);
  }
  return merged;
}

void RowVisits::end_step(Communicator& comm, std::int64_t time) {
  if (!tables_.any_limits()) return;
  comm.enter("limits of tables");
  if (comm.size() > 1) time = greatest(time, comm);
  for (std::size_t t = 0; t < tables_.size(); ++t) {
    EmbeddingTable& table = tables_[t];
    if (!table.has_limits()) continue;
    const bool with_values = table.config().limits.evict == Evict::custom;
    Visits visits = of_all_ranks(table.owners(), std::exchange(mine_[t], {}), with_values, comm);
    if (!visits.is_distinct) visits = merged(visits);
    table.end_step(visits, time, comm);
  }
}

}  // namespace hstu
