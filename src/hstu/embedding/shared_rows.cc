#include "hstu/embedding/shared_rows.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/comm/communicator.h"
#include "hstu/rows/unique.h"

namespace hstu {
namespace {

using Ids = std::span<const std::int64_t>;

enum class Way { read, write };

// Whom a rank asks for a row, or tells its gradient: rows by row have an owner, and columns are on every
// rank; a copy is read here and written everywhere.
HostRoute route_of(Ids ids, const RowOwners& owners, Way way) {
  const auto ranks = static_cast<std::size_t>(owners.ranks);
  std::vector<std::vector<std::size_t>> groups(ranks);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (owners.by_row())
      groups[static_cast<std::size_t>(owners.owner(ids[i]))].push_back(i);
    else if (way == Way::read && !owners.is_distributed())
      groups[static_cast<std::size_t>(owners.rank)].push_back(i);
    else
      for (auto& group : groups) group.push_back(i);
  }
  HostRoute route{{}, {0}};
  for (const auto& group : groups) {
    route.places.insert(route.places.end(), group.begin(), group.end());
    route.first.push_back(route.places.size());
  }
  return route;
}

std::vector<HostRoute> routes_of(const TableSet& tables, const std::vector<Ids>& ids, Way way) {
  std::vector<HostRoute> routes;
  for (std::size_t t = 0; t < ids.size(); ++t) routes.push_back(route_of(ids[t], tables[t].owners(), way));
  return routes;
}

// To each rank: the number of ids of each table, then the ids.
RowRequests send_ids(const TableSet& tables, const std::vector<Ids>& ids,
                     const std::vector<HostRoute>& routes) {
  const auto ranks = static_cast<std::size_t>(tables.comm().size());
  std::vector<std::int64_t> send, counts;
  for (std::size_t r = 0; r < ranks; ++r) {
    const std::size_t begin = send.size();
    for (const HostRoute& route : routes) send.push_back(static_cast<std::int64_t>(route.count(r)));
    for (std::size_t t = 0; t < routes.size(); ++t)
      for (std::size_t i = routes[t].first[r]; i < routes[t].first[r + 1]; ++i)
        send.push_back(ids[t][routes[t].places[i]]);
    counts.push_back(static_cast<std::int64_t>(send.size() - begin));
  }
  const std::vector<std::int64_t> received =
      tables.comm().all_to_all(std::span<const std::int64_t>(send), counts);
  RowRequests requests{std::vector<std::vector<std::int64_t>>(tables.size()),
                       std::vector<std::vector<std::size_t>>(tables.size())};
  auto at = received.begin();
  for (std::size_t r = 0; r < ranks; ++r) {
    const auto header = at;
    at += static_cast<std::ptrdiff_t>(tables.size());
    for (std::size_t t = 0; t < tables.size(); ++t) {
      const std::int64_t count = header[static_cast<std::ptrdiff_t>(t)];
      requests.ids[t].insert(requests.ids[t].end(), at, at + count);
      requests.counts[t].push_back(static_cast<std::size_t>(count));
      at += count;
    }
  }
  return requests;
}

// Of a table's rows, those columns that rank r has.
struct Columns {
  std::size_t first, count, dim;
};
Columns columns_of(const EmbeddingTable& table, std::size_t r) {
  const std::int64_t dim = table.config().dim;
  const auto rank = static_cast<int>(r);
  return {static_cast<std::size_t>(table.owners().first_column(rank, dim)),
          static_cast<std::size_t>(table.owners().columns(rank, dim)), static_cast<std::size_t>(dim)};
}

// The number of floats for each rank: floats(table, rank), added over tables.
template <typename Floats>
std::vector<std::int64_t> floats_by_rank(const TableSet& tables, const Floats& floats) {
  std::vector<std::int64_t> sums(static_cast<std::size_t>(tables.comm().size()), 0);
  for (std::size_t r = 0; r < sums.size(); ++r)
    for (std::size_t t = 0; t < tables.size(); ++t) sums[r] += static_cast<std::int64_t>(floats(t, r));
  return sums;
}

std::size_t width_of(const TableSet& tables, std::size_t t) {
  return static_cast<std::size_t>(tables[t].width());
}

// The answer: the rows that each rank asked for, in the order in which it asked.
std::vector<float> rows_for(TableSet& tables, const RowRequests& requests, RowAccess access) {
  std::vector<std::vector<float>> rows;  // by table, in the order of requests.ids
  for (std::size_t t = 0; t < tables.size(); ++t) {
    const UniqueIds distinct = unique(requests.ids[t]);
    const std::size_t width = width_of(tables, t);
    const Tensor found = tables[t].gather(tables[t].select(distinct.ids, access));
    rows.emplace_back().resize(requests.ids[t].size() * width);
    for (std::size_t i = 0; i < distinct.index.size(); ++i)
      std::copy_n(found.data<float>() + static_cast<std::size_t>(distinct.index[i]) * width, width,
                  rows.back().data() + i * width);
  }
  std::vector<float> send;
  std::vector<std::size_t> done(tables.size(), 0);
  for (std::size_t r = 0; r < static_cast<std::size_t>(tables.comm().size()); ++r) {
    for (std::size_t t = 0; t < tables.size(); ++t) {
      const std::size_t count = requests.counts[t][r] * width_of(tables, t);
      const auto begin = rows[t].begin() + static_cast<std::ptrdiff_t>(done[t]);
      send.insert(send.end(), begin, begin + static_cast<std::ptrdiff_t>(count));
      done[t] += count;
    }
  }
  return send;
}

}  // namespace

// Puts rows, or the columns that their owners have of them, where the batch has the ids: of rank after rank
// those for which is_sent(rank, number), by their numbers among the rows that this one asked of it.
template <typename IsSent>
void HostLookup::place(std::span<const float> values, const IsSent& is_sent) {
  const float* at = values.data();
  for (std::size_t r = 0; r < static_cast<std::size_t>(tables_.comm().size()); ++r) {
    std::int64_t number = 0;
    for (std::size_t t = 0; t < tables_.size(); ++t) {
      const Columns columns = columns_of(tables_[t], r);
      for (std::size_t i = routes_[t].first[r]; i < routes_[t].first[r + 1]; ++i) {
        if (!is_sent(r, number++)) continue;
        std::copy_n(at, columns.count,
                    rows_[t].mutable_data<float>() + routes_[t].places[i] * columns.dim + columns.first);
        at += columns.count;
      }
    }
  }
}

HostLookup::HostLookup(TableSet& tables, std::span<const Tensor> ids) : tables_(tables) {
  std::vector<Ids> names;
  for (const Tensor& of_table : ids)
    names.emplace_back(of_table.data<std::int64_t>(), static_cast<std::size_t>(of_table.size()));
  routes_ = routes_of(tables, names, Way::read);
  requests_ = send_ids(tables, names, routes_);
  for (std::size_t t = 0; t < tables.size(); ++t)
    rows_.push_back(Tensor::empty({ids[t].size(), tables[t].config().dim}, DType::f32));
}

void HostLookup::read_ahead() {
  sent_ = rows_for(tables_, requests_, RowAccess::read);
  place_all(sent_);
  is_ahead_ = true;
}

FetchedRows HostLookup::finish(RowAccess access) {
  const std::vector<float> answers = rows_for(tables_, requests_, access);
  if (is_ahead_)
    place_changed(answers);
  else
    place_all(answers);
  return {std::move(rows_), nullptr};
}

void HostLookup::place_all(std::span<const float> answers) {
  const std::vector<float> received =
      tables_.comm().all_to_all(answers, floats_by_rank(tables_, [&](std::size_t t, std::size_t r) {
                                  return requests_.counts[t][r] * width_of(tables_, t);
                                }));
  place(received, [](std::size_t, std::int64_t) { return true; });
}

void HostLookup::place_changed(std::span<const float> answers) {
  const auto ranks = static_cast<std::size_t>(tables_.comm().size());
  // To each rank: the numbers of rows among those that it asked for, and the rows.
  std::vector<std::int64_t> numbers, number_counts(ranks, 0), value_counts(ranks, 0);
  std::vector<float> values;
  std::size_t at = 0;
  for (std::size_t r = 0; r < ranks; ++r) {
    std::int64_t number = 0;
    for (std::size_t t = 0; t < tables_.size(); ++t) {
      const std::size_t width = width_of(tables_, t);
      for (std::size_t i = 0; i < requests_.counts[t][r]; ++i, ++number, at += width) {
        const float* const row = answers.data() + at;
        if (std::memcmp(row, sent_.data() + at, width * sizeof(float)) == 0) continue;
        numbers.push_back(number);
        values.insert(values.end(), row, row + width);
        ++number_counts[r];
        value_counts[r] += static_cast<std::int64_t>(width);
      }
    }
  }
  std::vector<std::int64_t> counts;
  const std::vector<std::int64_t> changed =
      tables_.comm().all_to_all(std::span<const std::int64_t>(numbers), number_counts, &counts);
  const std::vector<float> received = tables_.comm().all_to_all(std::span<const float>(values), value_counts);
  std::vector<std::size_t> next{0};  // by rank
  for (const std::int64_t count : counts) next.push_back(next.back() + static_cast<std::size_t>(count));
  const std::vector<std::size_t> first = next;
  place(received, [&](std::size_t r, std::int64_t number) {
    const bool is_sent = next[r] < first[r + 1] && changed[next[r]] == number;
    next[r] += is_sent ? 1 : 0;
    return is_sent;
  });
}

std::vector<RowsWithIds> send_to_owners(const TableSet& tables, const std::vector<RowsWithIds>& mine) {
  std::vector<Ids> names;
  names.reserve(mine.size());
  for (const RowsWithIds& rows : mine) names.emplace_back(rows.ids);
  const std::vector<HostRoute> routes = routes_of(tables, names, Way::write);
  RowRequests requests = send_ids(tables, names, routes);
  const auto ranks = static_cast<std::size_t>(tables.comm().size());
  std::vector<float> send;
  for (std::size_t r = 0; r < ranks; ++r) {
    for (std::size_t t = 0; t < tables.size(); ++t) {
      const Columns columns = columns_of(tables[t], r);
      for (std::size_t i = routes[t].first[r]; i < routes[t].first[r + 1]; ++i) {
        const float* const from = mine[t].values.data() + routes[t].places[i] * columns.dim + columns.first;
        send.insert(send.end(), from, from + columns.count);
      }
    }
  }
  const std::vector<float> received = tables.comm().all_to_all(
      std::span<const float>(send), floats_by_rank(tables, [&](std::size_t t, std::size_t r) {
        return routes[t].count(r) * columns_of(tables[t], r).count;
      }));
  std::vector<RowsWithIds> owned(tables.size());
  auto at = received.begin();
  for (std::size_t r = 0; r < ranks; ++r) {
    for (std::size_t t = 0; t < tables.size(); ++t) {
      const auto count = static_cast<std::ptrdiff_t>(requests.counts[t][r] * width_of(tables, t));
      owned[t].values.insert(owned[t].values.end(), at, at + count);
      at += count;
    }
  }
  for (std::size_t t = 0; t < tables.size(); ++t) owned[t].ids = std::move(requests.ids[t]);
  return owned;
}

}  // namespace hstu
