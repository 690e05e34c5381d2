// What lookups and gradients of rows in the memory of several GPUs share: numbers of rows, messages between
// GPUs, and the types in which rows travel. Of each table a rank sends to rank 0 first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hstu/comm/device_transport.h"
#include "hstu/embedding/table_set.h"
#include "hstu/embedding/wire_rows.h"

namespace hstu {

using Counts = std::vector<std::int64_t>;  // one per rank

// What every rank will send to this one, by table, given what this one sends to each.
std::vector<Counts> exchange_counts(const std::vector<Counts>& mine, Communicator& comm);

// A message of all of the tensor to a rank, or from it.
void add_message(Tensor tensor, std::size_t rank, std::vector<DeviceMessage>& messages);
// Sends the rows of out[t] as out_counts[t] says and receives in[t] as in_counts[t].
void exchange(const TableSet& tables, const std::vector<Tensor>& out, const std::vector<Counts>& out_counts,
              const std::vector<Tensor>& in, const std::vector<Counts>& in_counts);

// Of each table one element for each of its counts.
std::vector<Tensor> new_tensors(const TableSet& tables, const std::vector<Counts>& counts, DType type);
// The type in which rows of table t travel: those of copies do not.
DType wire_type(const TableSet& tables, std::size_t t, DType type);
// The same of rows, in that type.
std::vector<Tensor> new_rows(const TableSet& tables, const std::vector<Counts>& counts, DType type);
// Conversions whose lists may be of different types.
void from_wires(const std::vector<WireRows>& lists, const TableSet& tables);
void to_wires(const std::vector<WireRows>& lists, const TableSet& tables);
// Rows of another type become f32.
void make_f32(std::vector<Tensor>& rows, const TableSet& tables);

// The parts of all ranks in a tensor whose rows are those of rank 0 first.
std::vector<Tensor> parts_of(const Tensor& tensor, const Counts& counts);
// Ids of one rank are distinct, those of several need not be.
std::vector<Tensor> slots_of(TableSet& tables, const std::vector<Tensor>& ids,
                             const std::vector<Counts>& counts, RowAccess access);

}  // namespace hstu
