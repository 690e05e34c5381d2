#include "hstu/embedding/device_exchange.h"

#include <numeric>
#include <span>

namespace hstu {
namespace {

std::int64_t sum_of(std::span<const std::int64_t> counts) {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

void add_messages(const std::vector<Parts>& lists, std::vector<DeviceMessage>& messages) {
  for (const Parts& parts : lists) {
    for (std::size_t r = 0; r < parts.size(); ++r) {
      Tensor part = parts[r];
      messages.push_back({static_cast<int>(r), part.mutable_raw(), static_cast<std::int64_t>(part.bytes())});
    }
  }
}

// The lists of a conversion are of one type.
template <typename Convert>
void by_type(const std::vector<WireRows>& lists, const Convert& convert) {
  for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
    std::vector<WireRows> of_type;
    for (const WireRows& list : lists)
      if (list.wire.dtype() == type) of_type.push_back(list);
    if (!of_type.empty()) convert(of_type);
  }
}

}  // namespace

std::vector<Counts> exchange_counts(const std::vector<Counts>& mine, Communicator& comm) {
  const auto ranks = static_cast<std::size_t>(comm.size());
  Counts send;
  for (std::size_t r = 0; r < ranks; ++r)
    for (const Counts& of_table : mine) send.push_back(of_table[r]);
  const Counts received = comm.all_to_all(std::span<const std::int64_t>(send),
                                          Counts(ranks, static_cast<std::int64_t>(mine.size())));
  std::vector<Counts> theirs(mine.size(), Counts(ranks));
  for (std::size_t r = 0; r < ranks; ++r)
    for (std::size_t t = 0; t < mine.size(); ++t) theirs[t][r] = received[r * mine.size() + t];
  return theirs;
}

void exchange(const TableSet& tables, const std::vector<Parts>& out, const std::vector<Parts>& in) {
  std::vector<DeviceMessage> sends, receives;
  add_messages(out, sends);
  add_messages(in, receives);
  tables.gpus()->exchange(sends, receives, tables.stream());
}

std::vector<Parts> joined(std::vector<Parts> first, const std::vector<Parts>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

std::vector<Tensor> new_tensors(const TableSet& tables, const std::vector<Counts>& counts, DType type) {
  std::vector<Tensor> tensors;
  tensors.reserve(counts.size());
  for (const Counts& of_table : counts)
    tensors.push_back(Tensor::empty({sum_of(of_table)}, type, tables.context()));
  return tensors;
}

DType wire_type(const TableSet& tables, std::size_t t, DType type) {
  return tables[t].owners().is_distributed() ? type : DType::f32;
}

std::vector<Parts> new_rows(const TableSet& tables, const std::vector<Counts>& counts, DType type,
                            ColumnsOf whose) {
  std::vector<Parts> rows;
  for (std::size_t t = 0; t < tables.size(); ++t) {
    const RowOwners& owners = tables[t].owners();
    Parts& parts = rows.emplace_back();
    for (std::size_t r = 0; r < counts[t].size(); ++r) {
      const int rank = whose == ColumnsOf::me ? owners.rank : static_cast<int>(r);
      parts.push_back(Tensor::empty({counts[t][r], owners.columns(rank, tables[t].config().dim)},
                                    wire_type(tables, t, type), tables.context()));
    }
  }
  return rows;
}

void add_wire_rows(const RowOwners& owners, const Tensor& rows, const Parts& places, const Parts& wire,
                   std::vector<WireRows>& lists) {
  for (std::size_t r = 0; r < wire.size(); ++r)
    lists.push_back({rows, places[r], wire[r], owners.first_column(static_cast<int>(r), rows.cols())});
}

void from_wires(const std::vector<WireRows>& lists, const TableSet& tables) {
  by_type(lists, [&](const auto& of_type) { cuda::from_wire(of_type, tables.stream()); });
}
void to_wires(const std::vector<WireRows>& lists, const TableSet& tables) {
  by_type(lists,
          [&](const auto& of_type) { cuda::to_wire(of_type, tables.wire_counter(), tables.stream()); });
}

void make_f32(std::vector<Parts>& rows, const TableSet& tables) {
  std::vector<WireRows> lists;
  for (Parts& parts : rows) {
    for (Tensor& part : parts) {
      if (part.dtype() == DType::f32) continue;
      lists.push_back({Tensor::empty(part.shape(), DType::f32, tables.context()), {}, part});
      part = lists.back().rows;
    }
  }
  from_wires(lists, tables);
}

Parts parts_of(const Tensor& tensor, const Counts& counts) {
  Parts parts;
  std::int64_t begin = 0;
  for (const std::int64_t count : counts) {
    parts.push_back(tensor.row_range(begin, begin + count));
    begin += count;
  }
  return parts;
}

std::vector<Parts> parts_of(const std::vector<Tensor>& tensors, const std::vector<Counts>& counts) {
  std::vector<Parts> parts;
  for (std::size_t t = 0; t < tensors.size(); ++t) parts.push_back(parts_of(tensors[t], counts[t]));
  return parts;
}

Parts asked_parts(const RowOwners& owners, const Tensor& tensor, const Counts& asked) {
  return owners.by_column() ? Parts(asked.size(), tensor) : parts_of(tensor, asked);
}

}  // namespace hstu
