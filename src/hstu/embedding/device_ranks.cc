#include "hstu/embedding/device_ranks.h"

#include <numeric>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/comm/device_transport.h"
#include "hstu/embedding/wire_rows.h"

namespace hstu {
namespace {

using Counts = std::vector<std::int64_t>;  // one per rank

std::int64_t sum_of(std::span<const std::int64_t> counts) {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

// What every rank will send to this one, by table, given what this one sends to each.
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

// The elements (rows) of a tensor that go to each rank, or come from it: rank 0's first.
void add_messages(Tensor& tensor, std::span<const std::int64_t> counts,
                  std::vector<DeviceMessage>& messages) {
  const auto row_bytes =
      static_cast<std::int64_t>(size_of(tensor.dtype())) * (tensor.rows() > 0 ? tensor.cols() : 0);
  std::byte* at = tensor.mutable_raw();
  for (std::size_t r = 0; r < counts.size(); ++r) {
    messages.push_back({static_cast<int>(r), at, counts[r] * row_bytes});
    at += counts[r] * row_bytes;
  }
}

// Sends the rows of out[t] as out_counts[t] says and receives in[t] as in_counts[t].
void exchange(TableSet& tables, std::vector<Tensor>& out, const std::vector<Counts>& out_counts,
              std::vector<Tensor>& in, const std::vector<Counts>& in_counts) {
  std::vector<DeviceMessage> sends, receives;
  for (std::size_t t = 0; t < tables.size(); ++t) {
    add_messages(out[t], out_counts[t], sends);
    add_messages(in[t], in_counts[t], receives);
  }
  tables.gpus()->exchange(sends, receives, tables.stream());
}

std::vector<Tensor> new_tensors(const TableSet& tables, const std::vector<Counts>& counts, DType type) {
  std::vector<Tensor> tensors;
  for (const Counts& of_table : counts)
    tensors.push_back(Tensor::empty({sum_of(of_table)}, type, tables.context()));
  return tensors;
}

// The type in which rows of table t travel: those of copies do not.
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

// The lists of a conversion are of one type.
void from_wires(const std::vector<WireRows>& lists, const Stream& stream) {
  for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
    std::vector<WireRows> of_type;
    for (const WireRows& list : lists)
      if (list.wire.dtype() == type) of_type.push_back(list);
    if (!of_type.empty()) cuda::from_wire(of_type, stream);
  }
}

// The part of rank r in tensors whose rows are those of rank 0 first.
Tensor part_of(const Tensor& tensor, const Counts& counts, std::size_t r) {
  const std::int64_t begin = sum_of(std::span(counts).first(r));
  return tensor.row_range(begin, begin + counts[r]);
}

// Ids of one rank are distinct, those of several need not be.
std::vector<Tensor> slots_of(TableSet& tables, const std::vector<Tensor>& ids,
                             const std::vector<Counts>& counts, RowAccess access) {
  std::vector<Tensor> slots = new_tensors(tables, counts, DType::i64);
  const std::size_t ranks = counts.front().size();
  std::vector<Tensor> by_rank, found;
  for (std::size_t r = 0; r < ranks; ++r) {
    for (std::size_t t = 0; t < tables.size(); ++t) {
      by_rank.push_back(part_of(ids[t], counts[t], r));
      found.push_back(part_of(slots[t], counts[t], r));
    }
  }
  tables.find_slots(by_rank, access, found, ranks);
  return slots;
}

// `slots` and `gradients`, those of rank 0 first, as one element per rank.
std::vector<OwnedGradients> by_rank(const std::vector<Tensor>& slots, const std::vector<Tensor>& gradients,
                                    const std::vector<Counts>& slot_counts,
                                    const std::vector<Counts>& counts) {
  std::vector<OwnedGradients> owned(counts.front().size());
  for (std::size_t r = 0; r < owned.size(); ++r) {
    for (std::size_t t = 0; t < counts.size(); ++t) {
      owned[r].selection.tables.push_back({Tensor(), part_of(slots[t], slot_counts[t], r)});
      owned[r].gradients.push_back(counts[t][r] > 0 ? part_of(gradients[t], counts[t], r) : Tensor());
    }
  }
  return owned;
}

// The counts of rows whose table has gradients, zeros for the others.
std::vector<Counts> with_gradients(const std::vector<Counts>& counts, std::span<const Tensor> gradients) {
  std::vector<Counts> sent = counts;
  for (std::size_t t = 0; t < sent.size(); ++t)
    if (!gradients[t].defined()) std::fill(sent[t].begin(), sent[t].end(), 0);
  return sent;
}

}  // namespace

FetchedRows fetch_rows(TableSet& tables, std::span<const Route> routes, RowAccess access) {
  require(routes.size() == tables.size(), "expected routes of {} tables, found {}", tables.size(),
          routes.size());
  std::vector<Tensor> ids;
  std::vector<Counts> asked;
  for (const Route& route : routes) {
    ids.push_back(route.ids);
    asked.emplace_back(route.counts.begin(), route.counts.end());
  }
  const std::vector<Counts> served = exchange_counts(asked, tables.comm());
  std::vector<Tensor> served_ids = new_tensors(tables, served, DType::i64);
  exchange(tables, ids, asked, served_ids, served);
  const std::vector<Tensor> slots = slots_of(tables, served_ids, served, access);

  RowSelection selection;
  for (std::size_t t = 0; t < tables.size(); ++t) selection.tables.push_back({served_ids[t], slots[t]});
  std::vector<Tensor> out = tables.gather(selection);
  const DType type = tables.wire().rows;
  std::vector<WireRows> packed;
  for (std::size_t t = 0; t < tables.size(); ++t) {
    if (wire_type(tables, t, type) == DType::f32) continue;
    packed.push_back({out[t], {}, Tensor::empty(out[t].shape(), type, tables.context())});
    out[t] = packed.back().wire;
  }
  if (!packed.empty()) cuda::to_wire(packed, tables.wire_counter(), tables.stream());
  std::vector<Tensor> in = new_rows(tables, asked, type);
  exchange(tables, out, served, in, asked);

  FetchedRows fetched;
  SentRows sent;
  std::vector<WireRows> lists;
  for (std::size_t t = 0; t < tables.size(); ++t) {
    fetched.rows.push_back(Tensor::empty(in[t].shape(), DType::f32, tables.context()));
    lists.push_back({fetched.rows[t], routes[t].places, in[t]});
    sent.tables.push_back({routes[t].ids, routes[t].places, asked[t], served[t], slots[t]});
  }
  from_wires(lists, tables.stream());
  fetched.sent = std::make_shared<const SentRows>(std::move(sent));
  return fetched;
}

namespace {

// Those of tables whose rows move.
std::vector<OwnedGradients> send_to_owners(TableSet& tables, const SentRows& sent,
                                           std::span<const Tensor> gradients) {
  std::vector<Counts> asked, served;
  std::vector<Tensor> slots;
  for (const SentRows::OfTable& table : sent.tables) {
    asked.push_back(table.asked);
    served.push_back(table.served);
    slots.push_back(table.slots);
  }
  const std::vector<Counts> out_counts = with_gradients(asked, gradients);
  const std::vector<Counts> in_counts = exchange_counts(out_counts, tables.comm());
  const DType type = tables.wire().gradients;
  std::vector<Tensor> out = new_rows(tables, out_counts, type);
  std::vector<Tensor> in = new_rows(tables, in_counts, type);
  std::vector<WireRows> lists;
  for (std::size_t t = 0; t < tables.size(); ++t)
    if (gradients[t].defined()) lists.push_back({gradients[t], sent.tables[t].places, out[t]});
  if (!lists.empty()) cuda::to_wire(lists, tables.wire_counter(), tables.stream());
  exchange(tables, out, out_counts, in, in_counts);
  if (type != DType::f32) {
    lists.clear();
    for (Tensor& of_table : in) {
      if (of_table.dtype() == DType::f32) continue;
      lists.push_back({Tensor::empty(of_table.shape(), DType::f32, tables.context()), {}, of_table});
      of_table = lists.back().rows;
    }
    from_wires(lists, tables.stream());
  }
  return by_rank(slots, in, served, in_counts);
}

}  // namespace

std::vector<OwnedGradients> send_gradients(TableSet& tables, const SentRows& sent,
                                           std::span<const Tensor> gradients) {
  std::vector<Tensor> moving(gradients.begin(), gradients.end()), copied(gradients.size());
  RowSelection selection;
  bool any_copies = false;
  for (std::size_t t = 0; t < tables.size(); ++t) {
    selection.tables.push_back({sent.tables[t].ids, Tensor()});
    if (tables[t].owners().moves()) continue;
    std::swap(moving[t], copied[t]);
    any_copies = true;
  }
  std::vector<OwnedGradients> owned = send_to_owners(tables, sent, moving);
  if (!any_copies) return owned;
  std::vector<OwnedGradients> of_copies = gather_gradients(tables, selection, copied);
  for (std::size_t r = 0; r < owned.size(); ++r) {
    for (std::size_t t = 0; t < tables.size(); ++t) {
      if (tables[t].owners().moves()) continue;
      owned[r].selection.tables[t] = std::move(of_copies[r].selection.tables[t]);
      owned[r].gradients[t] = std::move(of_copies[r].gradients[t]);
    }
  }
  return owned;
}

std::vector<OwnedGradients> gather_gradients(TableSet& tables, const RowSelection& selection,
                                             std::span<const Tensor> gradients) {
  const auto ranks = static_cast<std::size_t>(tables.comm().size());
  std::vector<Counts> mine;
  std::vector<Tensor> ids, values;
  for (std::size_t t = 0; t < tables.size(); ++t) {
    const bool any = gradients[t].defined();
    ids.push_back(any ? selection.tables[t].ids : Tensor::empty({0}, DType::i64, tables.context()));
    values.push_back(any ? gradients[t]
                         : Tensor::empty({0, tables[t].config().dim}, DType::f32, tables.context()));
    mine.emplace_back(ranks, ids[t].rows());
  }
  const std::vector<Counts> theirs = exchange_counts(mine, tables.comm());
  std::vector<Tensor> all_ids = new_tensors(tables, theirs, DType::i64);
  std::vector<Tensor> all_values = new_rows(tables, theirs, DType::f32);
  std::vector<DeviceMessage> sends, receives;
  for (std::size_t t = 0; t < tables.size(); ++t) {
    for (std::size_t r = 0; r < ranks; ++r) {
      for (Tensor* const tensor : {&ids[t], &values[t]})
        sends.push_back(
            {static_cast<int>(r), tensor->mutable_raw(), static_cast<std::int64_t>(tensor->bytes())});
      for (const Tensor& all : {all_ids[t], all_values[t]}) {
        Tensor part = part_of(all, theirs[t], r);
        receives.push_back(
            {static_cast<int>(r), part.mutable_raw(), static_cast<std::int64_t>(part.bytes())});
      }
    }
  }
  tables.gpus()->exchange(sends, receives, tables.stream());
  return by_rank(slots_of(tables, all_ids, theirs, RowAccess::train), all_values, theirs, theirs);
}

}  // namespace hstu
