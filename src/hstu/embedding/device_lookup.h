// Rows in the memory of several GPUs: to the ranks that read them. Ids and rows of all tables travel
// together; the host sees numbers of rows alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hstu/batching/route.h"
#include "hstu/embedding/device_exchange.h"
#include "hstu/embedding/row_lookup.h"

namespace hstu {

// What the gradients of a part need of its lookup.
struct SentRows {
  struct OfTable {
    Tensor ids, positions;             // of the Route, which must outlive it
    std::vector<std::int64_t> asked;   // (ranks) rows that this rank reads
    std::vector<std::int64_t> served;  // (ranks) rows that each rank reads here
    Tensor served_ids, handles;        // (sum of served) i64, those of rank 0 first
  };
  std::vector<OfTable> tables;
};

// Its memory is that of the tables' context, and its work is on their stream.
class DeviceLookup final : public RowLookup {
 public:
  // A route for each table, on the tables' GPU.
  DeviceLookup(TableSet& tables, std::vector<Route> routes);

  void prefetch() override;
  void read_ahead() override;
  void find_changed() override;
  FetchedRows finish(RowAccess access) override;

 private:
  void exchange_host_ids();
  // What the ranks have asked for.
  RowSelection select(RowAccess access) const;
  // Sends whole answers; gives the rows, or columns of them, that this rank has asked for, in the type and
  // the order in which they travel.
  std::vector<Parts> send(const std::vector<Tensor>& answers) const;
  void send_changed();

  TableSet& tables_;
  std::vector<Route> routes_;
  std::vector<Counts> asked_, served_;  // ids, by table
  std::vector<Tensor> served_ids_;      // (sum of served) i64: those of rank 0 first
  // The same of tables whose rows the host finds: their distinct ids, in host memory, and of each id the
  // place among these. Empty: there is no such table.
  std::vector<Tensor> distinct_;
  std::vector<std::vector<std::int32_t>> index_;
  // By table, after read_ahead():
  std::vector<Tensor> sent_;
  std::vector<Parts> arrived_;
  // After find_changed(): the answers then, and of each rank the places of those that differ.
  std::vector<Tensor> now_, changed_;
  const std::int64_t* changed_counts_ = nullptr;  // (tables, ranks), in host memory
  Event counted_;
};

}  // namespace hstu
