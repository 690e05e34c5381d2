#include "hstu/embedding/split_rows.h"

#include <algorithm>

#include "hstu/base/error.h"
#include "hstu/comm/communicator.h"
#include "hstu/embedding/unique.h"

namespace hstu {
namespace {

using Ids = std::span<const std::int64_t>;

// Places of a table's ids, grouped by the rank that owns them; in each group in their order.
struct Route {
  std::vector<std::size_t> places;  // (n)
  std::vector<std::size_t> first;   // (ranks + 1): the group of rank r is [first[r], first[r + 1])
  std::size_t count(std::size_t rank) const { return first[rank + 1] - first[rank]; }
};

Route route_of(Ids ids, const RowOwners& owners) {
  Route route;
  route.first.assign(static_cast<std::size_t>(owners.ranks) + 1, 0);
  std::vector<std::size_t> owner(ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    owner[i] = static_cast<std::size_t>(owners.owner(ids[i]));
    ++route.first[owner[i] + 1];
  }
  for (std::size_t r = 1; r < route.first.size(); ++r) route.first[r] += route.first[r - 1];
  std::vector<std::size_t> next(route.first.begin(), route.first.end() - 1);
  route.places.resize(ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) route.places[next[owner[i]]++] = i;
  return route;
}

std::vector<Route> routes_of(const TableSet& tables, const std::vector<Ids>& ids) {
  std::vector<Route> routes;
  for (const Ids of_table : ids) routes.push_back(route_of(of_table, tables.owners()));
  return routes;
}

// What the ranks ask of this one.
struct Requests {
  std::vector<std::vector<std::int64_t>> ids;    // by table: those of rank 0 first
  std::vector<std::vector<std::size_t>> counts;  // by table and rank
};

// To each owner: the number of ids of each table, then the ids.
Requests send_ids(const TableSet& tables, const std::vector<Ids>& ids, const std::vector<Route>& routes) {
  const auto ranks = static_cast<std::size_t>(tables.owners().ranks);
  std::vector<std::int64_t> send, counts;
  for (std::size_t r = 0; r < ranks; ++r) {
    const std::size_t begin = send.size();
    for (const Route& route : routes) send.push_back(static_cast<std::int64_t>(route.count(r)));
    for (std::size_t t = 0; t < routes.size(); ++t)
      for (std::size_t i = routes[t].first[r]; i < routes[t].first[r + 1]; ++i)
        send.push_back(ids[t][routes[t].places[i]]);
    counts.push_back(static_cast<std::int64_t>(send.size() - begin));
  }
  const std::vector<std::int64_t> received =
      tables.comm().all_to_all(std::span<const std::int64_t>(send), counts);
  Requests requests{std::vector<std::vector<std::int64_t>>(tables.size()),
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

std::size_t width_of(const TableSet& tables, std::size_t t) {
  return static_cast<std::size_t>(tables[t].config().dim);
}

// The number of floats that go to or come from each rank, given the rows by table and rank.
template <typename Count>
std::vector<std::int64_t> floats_by_rank(const TableSet& tables, const Count& rows) {
  std::vector<std::int64_t> floats;
  for (std::size_t r = 0; r < static_cast<std::size_t>(tables.owners().ranks); ++r) {
    std::size_t sum = 0;
    for (std::size_t t = 0; t < tables.size(); ++t) sum += rows(t, r) * width_of(tables, t);
    floats.push_back(static_cast<std::int64_t>(sum));
  }
  return floats;
}

// The owner's side: the rows that each rank asked for, in the order in which it asked.
std::vector<float> rows_for(TableSet& tables, const Requests& requests, RowAccess access) {
  std::vector<std::vector<float>> rows;  // by table, in the order of requests.ids
  for (std::size_t t = 0; t < tables.size(); ++t) {
    const UniqueIds distinct = unique(requests.ids[t]);
    const std::vector<std::int64_t> slots = tables[t].slots(distinct.ids, access);
    const std::size_t width = width_of(tables, t);
    std::vector<float> found(distinct.ids.size() * width);
    tables[t].gather(distinct.ids, slots, found.data());
    rows.emplace_back().resize(requests.ids[t].size() * width);
    for (std::size_t i = 0; i < distinct.index.size(); ++i)
      std::copy_n(found.data() + static_cast<std::size_t>(distinct.index[i]) * width, width,
                  rows.back().data() + i * width);
  }
  std::vector<float> send;
  std::vector<std::size_t> done(tables.size(), 0);
  for (std::size_t r = 0; r < static_cast<std::size_t>(tables.owners().ranks); ++r) {
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

std::vector<Tensor> fetch_rows(TableSet& tables, std::span<const Tensor> ids, RowAccess access) {
  std::vector<Ids> names;
  for (const Tensor& of_table : ids)
    names.emplace_back(of_table.data<std::int64_t>(), static_cast<std::size_t>(of_table.size()));
  const std::vector<Route> routes = routes_of(tables, names);
  const Requests requests = send_ids(tables, names, routes);
  const std::vector<float> send = rows_for(tables, requests, access);
  const std::vector<float> received = tables.comm().all_to_all(
      std::span<const float>(send),
      floats_by_rank(tables, [&](std::size_t t, std::size_t r) { return requests.counts[t][r]; }));
  std::vector<Tensor> rows;
  for (std::size_t t = 0; t < tables.size(); ++t)
    rows.push_back(Tensor::empty({ids[t].size(), tables[t].config().dim}, DType::f32));
  const float* at = received.data();
  for (std::size_t r = 0; r < static_cast<std::size_t>(tables.owners().ranks); ++r) {
    for (std::size_t t = 0; t < tables.size(); ++t) {
      const std::size_t width = width_of(tables, t);
      for (std::size_t i = routes[t].first[r]; i < routes[t].first[r + 1]; ++i, at += width)
        std::copy_n(at, width, rows[t].mutable_data<float>() + routes[t].places[i] * width);
    }
  }
  return rows;
}

std::vector<RowsById> send_to_owners(const TableSet& tables, const std::vector<RowsById>& mine) {
  std::vector<Ids> names;
  for (const RowsById& rows : mine) names.emplace_back(rows.ids);
  const std::vector<Route> routes = routes_of(tables, names);
  Requests requests = send_ids(tables, names, routes);
  const auto ranks = static_cast<std::size_t>(tables.owners().ranks);
  std::vector<float> send;
  for (std::size_t r = 0; r < ranks; ++r) {
    for (std::size_t t = 0; t < tables.size(); ++t) {
      const std::size_t width = width_of(tables, t);
      for (std::size_t i = routes[t].first[r]; i < routes[t].first[r + 1]; ++i) {
        const float* const row = mine[t].values.data() + routes[t].places[i] * width;
        send.insert(send.end(), row, row + width);
      }
    }
  }
  const std::vector<float> received = tables.comm().all_to_all(
      std::span<const float>(send),
      floats_by_rank(tables, [&](std::size_t t, std::size_t r) { return routes[t].count(r); }));
  std::vector<RowsById> owned(tables.size());
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
