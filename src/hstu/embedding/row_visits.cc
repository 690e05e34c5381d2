#include "hstu/embedding/row_visits.h"

#include <algorithm>
#include <utility>

#include "hstu/embedding/unique.h"

namespace hstu {
namespace {

std::int64_t greatest(std::int64_t value, Communicator& comm) {
  const std::vector<std::int64_t> all = comm.all_gather(std::span<const std::int64_t>(&value, 1));
  return *std::max_element(all.begin(), all.end());
}

}  // namespace

void RowVisits::add(std::size_t t, std::span<const std::int64_t> ids,
                    std::span<const std::int64_t> occurrences, std::span<const std::int64_t> slots) {
  if (tables_[t].keeper() == nullptr) return;
  Visits& visits = mine_[t];
  visits.is_distinct = visits.ids.empty();
  visits.slots.insert(visits.slots.end(), slots.begin(), slots.end());
  visits.ids.insert(visits.ids.end(), ids.begin(), ids.end());
  visits.occurrences.insert(visits.occurrences.end(), occurrences.begin(), occurrences.end());
}

RowVisits::Visits RowVisits::of_all_ranks(const RowOwners& owners, Visits mine, Communicator& comm) {
  if (comm.size() == 1) return mine;
  if (!owners.by_row()) {
    return {comm.all_gather(std::span<const std::int64_t>(mine.ids)),
            comm.all_gather(std::span<const std::int64_t>(mine.occurrences)),
            {},
            false};
  }
  std::vector<std::vector<std::int64_t>> by_owner(static_cast<std::size_t>(comm.size()));
  for (std::size_t i = 0; i < mine.ids.size(); ++i) {
    auto& to = by_owner[static_cast<std::size_t>(owners.owner(mine.ids[i]))];
    to.push_back(mine.ids[i]);
    to.push_back(mine.occurrences[i]);
  }
  std::vector<std::int64_t> send, counts;
  for (const auto& to : by_owner) {
    send.insert(send.end(), to.begin(), to.end());
    counts.push_back(static_cast<std::int64_t>(to.size()));
  }
  const std::vector<std::int64_t> received = comm.all_to_all(std::span<const std::int64_t>(send), counts);
  Visits owned;
  owned.is_distinct = false;
  for (std::size_t i = 0; i < received.size(); i += 2) {
    owned.ids.push_back(received[i]);
    owned.occurrences.push_back(received[i + 1]);
  }
  return owned;
}

void RowVisits::end_step(Communicator& comm, std::int64_t time) {
  if (!tables_.any_limits()) return;
  comm.enter("limits of tables");
  if (comm.size() > 1) time = greatest(time, comm);
  for (std::size_t t = 0; t < tables_.size(); ++t) {
    EmbeddingTable& table = tables_[t];
    RowKeeper* const keeper = table.keeper();
    if (keeper == nullptr) continue;
    Visits visits = of_all_ranks(table.owners(), std::exchange(mine_[t], {}), comm);
    if (!visits.is_distinct) {
      const UniqueIds distinct = unique(visits.ids);
      std::vector<std::int64_t> sums(distinct.ids.size(), 0);
      for (std::size_t i = 0; i < distinct.index.size(); ++i)
        sums[static_cast<std::size_t>(distinct.index[i])] += visits.occurrences[i];
      visits = {distinct.ids, std::move(sums), {}, true};
    }
    keeper->begin_end(time);
    keeper->visit(visits.ids, visits.occurrences, visits.slots);
    keeper->expire();
    shrink(table, comm);
  }
}

void RowVisits::shrink(EmbeddingTable& table, Communicator& comm) {
  RowKeeper& keeper = *table.keeper();
  const std::int64_t capacity = keeper.limits().capacity;
  if (capacity == 0) return;
  const bool by_row = table.owners().by_row();
  const std::int64_t excess = (by_row ? comm.sum(table.rows_alive()) : table.rows_alive()) - capacity;
  if (excess <= 0) return;
  const std::vector<RowKeeper::Leaving> mine = keeper.first_to_leave(excess, by_row);
  if (!by_row) return keeper.drop(static_cast<std::int64_t>(mine.size()));
  std::vector<RowKeeper::Leaving> all = comm.all_gather(std::span<const RowKeeper::Leaving>(mine));
  if (all.empty()) return;
  const auto last = all.begin() + std::min(excess, static_cast<std::int64_t>(all.size())) - 1;
  std::nth_element(all.begin(), last, all.end());
  keeper.drop(std::upper_bound(mine.begin(), mine.end(), *last) - mine.begin());
}

}  // namespace hstu
