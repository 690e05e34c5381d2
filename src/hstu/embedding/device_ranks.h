// Rows of tables in the memory of several GPUs: to the ranks that read them, and their gradients to the ranks
// that have them. All ranks call these together. Ids, rows and gradients of all tables travel together; the
// host sees numbers of rows alone.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "hstu/embedding/table_set.h"

namespace hstu {

// The distinct ids of one table in the order in which they travel: those that are read on rank 0 first.
struct Route {
  Tensor ids;                            // (n) i64, on the GPU
  Tensor places;                         // (n) i32, on the GPU: where each is among the ids of the batch
  std::span<const std::int64_t> counts;  // (ranks) ids that are read on each rank
};

// What the gradients of a part need of its lookup.
struct SentRows {
  struct OfTable {
    Tensor ids, places;                // of the Route, which must outlive it
    std::vector<std::int64_t> asked;   // (ranks) rows that this rank reads
    std::vector<std::int64_t> served;  // (ranks) rows that each rank reads here
    Tensor slots;                      // (sum of served) i64, those of rank 0 first
  };
  std::vector<OfTable> tables;
};

// The rows of the routes' ids in the order of the batch: (n_t, D) f32, one tensor per table, as
// their owners have them. RowAccess::train creates missing rows there.
struct FetchedRows {
  std::vector<Tensor> rows;
  std::shared_ptr<const SentRows> sent;
};
FetchedRows fetch_rows(TableSet& tables, std::span<const Route> routes, RowAccess access);

// Gradients of rows that this rank has: of one rank's part, each row once.
struct OwnedGradients {
  RowSelection selection;
  std::vector<Tensor> gradients;  // (n_t, D) each; undefined: none
};

// Sends the gradients of fetched rows, one tensor per table (undefined: none), to the rows' owners. Gives
// what the ranks sent to this one, one element per rank. Those of copies go to every rank.
std::vector<OwnedGradients> send_gradients(TableSet& tables, const SentRows& sent,
                                           std::span<const Tensor> gradients);

// Tables of which every rank has a copy: gives the gradients of all ranks, one element per rank; missing rows
// are created. `selection` has ids.
std::vector<OwnedGradients> gather_gradients(TableSet& tables, const RowSelection& selection,
                                             std::span<const Tensor> gradients);

}  // namespace hstu
