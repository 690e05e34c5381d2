#include "hstu/embedding/device_exchange.h"

#include <numeric>
#include <span>

namespace hstu {
namespace {

std::int64_t sum_of(std::span<const std::int64_t> counts) {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

// The rows of a tensor that go to each rank, or come from it: rank 0's first.
void add_messages(const Tensor& tensor, const Counts& counts, std::vector<DeviceMessage>& messages) {
  const std::vector<Tensor> parts = parts_of(tensor, counts);
  for (std::size_t r = 0; r < parts.size(); ++r) add_message(parts[r], r, messages);
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

void add_message(Tensor tensor, std::size_t rank, std::vector<DeviceMessage>& messages) {
  messages.push_back(
      {static_cast<int>(rank), tensor.mutable_raw(), static_cast<std::int64_t>(tensor.bytes())});
}

void exchange(const TableSet& tables, const std::vector<Tensor>& out, const std::vector<Counts>& out_counts,
              const std::vector<Tensor>& in, const std::vector<Counts>& in_counts) {
  std::vector<DeviceMessage> sends, receives;
  for (std::size_t t = 0; t < tables.size(); ++t) {
    add_messages(out[t], out_counts[t], sends);
    add_messages(in[t], in_counts[t], receives);
  }
  tables.gpus()->exchange(sends, receives, tables.stream());
}

std::vector<Tensor> new_tensors(const TableSet& tables, const std::vector<Counts>& counts, DType type) {
  std::vector<Tensor> tensors;
  tensors.reserve(counts.size());
  for (const Counts& of_table : counts)
    tensors.push_back(Tensor::empty({sum_of(of_table)}, type, tables.context()));
  return tensors;
}

DType wire_type(const TableSet& tables, std::size_t t, DType type) {
  return tables[t].owners().moves() ? type : DType::f32;
}

std::vector<Tensor> new_rows(const TableSet& tables, const std::vector<Counts>& counts, DType type) {
  std::vector<Tensor> tensors;
  for (std::size_t t = 0; t < tables.size(); ++t)
    tensors.push_back(Tensor::empty({sum_of(counts[t]), tables[t].config().dim}, wire_type(tables, t, type),
                                    tables.context()));
  return tensors;
}

void from_wires(const std::vector<WireRows>& lists, const TableSet& tables) {
  by_type(lists, [&](const auto& of_type) { cuda::from_wire(of_type, tables.stream()); });
}
void to_wires(const std::vector<WireRows>& lists, const TableSet& tables) {
  by_type(lists,
          [&](const auto& of_type) { cuda::to_wire(of_type, tables.wire_counter(), tables.stream()); });
}

void make_f32(std::vector<Tensor>& rows, const TableSet& tables) {
  std::vector<WireRows> lists;
  for (Tensor& of_table : rows) {
    if (of_table.dtype() == DType::f32) continue;
    lists.push_back({Tensor::empty(of_table.shape(), DType::f32, tables.context()), {}, of_table});
    of_table = lists.back().rows;
  }
  from_wires(lists, tables);
}

std::vector<Tensor> parts_of(const Tensor& tensor, const Counts& counts) {
  std::vector<Tensor> parts;
  std::int64_t begin = 0;
  for (const std::int64_t count : counts) {
    parts.push_back(tensor.row_range(begin, begin + count));
    begin += count;
  }
  return parts;
}

std::vector<Tensor> slots_of(TableSet& tables, const std::vector<Tensor>& ids,
                             const std::vector<Counts>& counts, RowAccess access) {
  std::vector<Tensor> slots = new_tensors(tables, counts, DType::i64);
  const std::size_t ranks = counts.front().size(), size = tables.size();
  std::vector<Tensor> by_rank(ranks * size), found(ranks * size);
  for (std::size_t t = 0; t < size; ++t) {
    const std::vector<Tensor> of_ids = parts_of(ids[t], counts[t]), of_slots = parts_of(slots[t], counts[t]);
    for (std::size_t r = 0; r < ranks; ++r) {
      by_rank[r * size + t] = of_ids[r];
      found[r * size + t] = of_slots[r];
    }
  }
  tables.find_slots(by_rank, access, found, ranks);
  return slots;
}

}  // namespace hstu
