// Gradients of rows in the memory of several GPUs: to the ranks that have the rows. All ranks call these
// together. Those of all tables travel together; the host sees numbers of rows alone.
#pragma once

#include <span>
#include <vector>

#include "hstu/embedding/device_lookup.h"
#include "hstu/embedding/table_set.h"

namespace hstu {

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
