// Rows of tables that ranks share: to the ranks that read them, and their gradients to the ranks that have
// them. All ranks call these together. All tables travel together, however each is shared: an exchange of
// sizes and one of data for the ids, one for the rows (two for those that have changed), two for the
// gradients.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hstu/embedding/row_lookup.h"
#include "hstu/embedding/table_set.h"

namespace hstu {

// Rows of one table by id: values (n, D), or (n, width()) of what a rank has.
struct RowsWithIds {
  std::vector<std::int64_t> ids;  // (n)
  std::vector<float> values;
};

// Places of a table's ids, grouped by the rank that they are for; in each group in their order.
struct HostRoute {
  std::vector<std::size_t> places;
  std::vector<std::size_t> first;  // (ranks + 1): the group of rank r is [first[r], first[r + 1])
  std::size_t count(std::size_t rank) const { return first[rank + 1] - first[rank]; }
};

// What the ranks ask of this one.
struct RowRequests {
  std::vector<std::vector<std::int64_t>> ids;    // by table: those of rank 0 first
  std::vector<std::vector<std::size_t>> counts;  // by table and rank
};

class HostLookup final : public RowLookup {
 public:
  // Of ids[t] (n_t) i64 in host memory, each once.
  HostLookup(TableSet& tables, std::span<const Tensor> ids);

  void prefetch() override {}
  void read_ahead() override;
  void find_changed() override {}
  FetchedRows finish(RowAccess access) override;

 private:
  void place_all(std::span<const float> answers);
  void place_changed(std::span<const float> answers);
  template <typename IsSent>
  void place(std::span<const float> values, const IsSent& is_sent);

  TableSet& tables_;
  std::vector<HostRoute> routes_;
  RowRequests requests_;
  std::vector<Tensor> rows_;  // (n_t, D) f32: what has arrived
  bool is_ahead_ = false;
  std::vector<float> sent_;  // by read_ahead()
};

// Sends every row to the ranks that have it. Gives the rows of which this rank has something, of each table
// those of rank 0 first; an id occurs once for each rank that sent it.
std::vector<RowsWithIds> send_to_owners(const TableSet& tables, const std::vector<RowsWithIds>& mine);

}  // namespace hstu
