// What lookups and gradients of rows in the memory of several GPUs share: numbers of rows, messages between
// GPUs, and the columns and types in which rows travel. Of each table a rank sends to rank 0 first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hstu/comm/device_transport.h"
#include "hstu/embedding/table_set.h"
#include "hstu/rows/wire_rows.h"

namespace hstu {

using Counts = std::vector<std::int64_t>;  // one per rank
using Parts = std::vector<Tensor>;         // one per rank: what it gets, or what comes from it

// What every rank will send to this one, by table, given what this one sends to each.
std::vector<Counts> exchange_counts(const std::vector<Counts>& mine, Communicator& comm);

// Sends out[i][r] to rank r, and receives in[i][r] from it, for all i.
void exchange(const TableSet& tables, const std::vector<Parts>& out, const std::vector<Parts>& in);
// `first`, then `second`.
std::vector<Parts> joined(std::vector<Parts> first, const std::vector<Parts>& second);

// Of each table one element for each of its counts.
std::vector<Tensor> new_tensors(const TableSet& tables, const std::vector<Counts>& counts, DType type);
// The type in which rows of table t travel: those of copies do not.
DType wire_type(const TableSet& tables, std::size_t t, DType type);
// Of each table counts[t][r] rows to rank r, or from it, in that type: of the columns that this rank has, or
// that rank r has.
enum class ColumnsOf { me, peer };
std::vector<Parts> new_rows(const TableSet& tables, const std::vector<Counts>& counts, DType type,
                            ColumnsOf whose);
// Adds the conversions between rows (n, D) at places[r] and the columns that rank r has of them: wire[r].
void add_wire_rows(const RowOwners& owners, const Tensor& rows, const Parts& places, const Parts& wire,
                   std::vector<WireRows>& lists);
// Conversions whose lists may be of different types.
void from_wires(const std::vector<WireRows>& lists, const TableSet& tables);
void to_wires(const std::vector<WireRows>& lists, const TableSet& tables);
// Rows of another type become f32.
void make_f32(std::vector<Parts>& rows, const TableSet& tables);

// The parts of all ranks in a tensor whose rows are those of rank 0 first.
Parts parts_of(const Tensor& tensor, const Counts& counts);
// The same of each table.
std::vector<Parts> parts_of(const std::vector<Tensor>& tensors, const std::vector<Counts>& counts);
// Of a Route's tensor, the part for each rank: by column, all of it.
Parts asked_parts(const RowOwners& owners, const Tensor& tensor, const Counts& asked);

}  // namespace hstu
