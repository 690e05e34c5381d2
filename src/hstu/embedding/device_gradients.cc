#include "hstu/embedding/device_gradients.h"

#include <algorithm>
#include <utility>

#include "hstu/embedding/device_exchange.h"

namespace hstu {
namespace {

// `ids` and `handles`, those of rank 0 first, and their `gradients`, as one element per rank.
std::vector<OwnedGradients> by_rank(const std::vector<Tensor>& ids, const std::vector<Tensor>& handles,
                                    const std::vector<Parts>& gradients, const std::vector<Counts>& counts) {
  std::vector<OwnedGradients> owned(counts.front().size());
  for (std::size_t t = 0; t < counts.size(); ++t) {
    const Parts of_ids = parts_of(ids[t], counts[t]), of_handles = parts_of(handles[t], counts[t]);
    for (std::size_t r = 0; r < owned.size(); ++r) {
      owned[r].selection.tables.push_back({.ids = of_ids[r], .handles = of_handles[r]});
      owned[r].gradients.push_back(gradients[t][r].rows() > 0 ? gradients[t][r] : Tensor());
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

// Those of tables whose rows move.
std::vector<OwnedGradients> send_to_owners(TableSet& tables, const SentRows& sent,
                                           std::span<const Tensor> gradients) {
  std::vector<Counts> asked, served;
  std::vector<Tensor> ids, handles;
  for (const SentRows::OfTable& table : sent.tables) {
    asked.push_back(table.asked);
    served.push_back(table.served);
    ids.push_back(table.served_ids);
    handles.push_back(table.handles);
  }
  const std::vector<Counts> out_counts = with_gradients(asked, gradients);
  const std::vector<Counts> in_counts = exchange_counts(out_counts, tables.comm());
  const DType type = tables.wire().gradients;
  const std::vector<Parts> out = new_rows(tables, out_counts, type, ColumnsOf::peer);
  std::vector<Parts> in = new_rows(tables, in_counts, type, ColumnsOf::me);
  std::vector<WireRows> lists;
  for (std::size_t t = 0; t < tables.size(); ++t) {
    if (!gradients[t].defined()) continue;
    const RowOwners& owners = tables[t].owners();
    add_wire_rows(owners, gradients[t], asked_parts(owners, sent.tables[t].positions, asked[t]), out[t],
                  lists);
  }
  to_wires(lists, tables);
  exchange(tables, out, in);
  make_f32(in, tables);
  return by_rank(ids, handles, in, served);
}

}  // namespace

std::vector<OwnedGradients> send_gradients(TableSet& tables, const SentRows& sent,
                                           std::span<const Tensor> gradients) {
  std::vector<Tensor> moving(gradients.begin(), gradients.end()), copied(gradients.size());
  RowSelection selection;
  bool any_copies = false;
  for (std::size_t t = 0; t < tables.size(); ++t) {
    selection.tables.push_back({.ids = sent.tables[t].ids, .handles = {}});
    if (tables[t].owners().is_distributed()) continue;
    std::swap(moving[t], copied[t]);
    any_copies = true;
  }
  std::vector<OwnedGradients> owned = send_to_owners(tables, sent, moving);
  if (!any_copies) return owned;
  std::vector<OwnedGradients> of_copies = gather_gradients(tables, selection, copied);
  for (std::size_t r = 0; r < owned.size(); ++r) {
    for (std::size_t t = 0; t < tables.size(); ++t) {
      if (tables[t].owners().is_distributed()) continue;
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
  std::vector<Parts> ids, values;
  for (std::size_t t = 0; t < tables.size(); ++t) {
    const bool any = gradients[t].defined();
    ids.emplace_back(ranks, any ? selection.tables[t].ids : Tensor::empty({0}, DType::i64, tables.context()));
    values.emplace_back(
        ranks, any ? gradients[t] : Tensor::empty({0, tables[t].config().dim}, DType::f32, tables.context()));
    mine.emplace_back(ranks, ids[t].front().rows());
  }
  const std::vector<Counts> theirs = exchange_counts(mine, tables.comm());
  std::vector<Tensor> all_ids = new_tensors(tables, theirs, DType::i64);
  const std::vector<Parts> all_values = new_rows(tables, theirs, DType::f32, ColumnsOf::me);
  exchange(tables, joined(ids, values), joined(parts_of(all_ids, theirs), all_values));
  std::vector<TableIds> lists(tables.size());
  for (std::size_t t = 0; t < tables.size(); ++t)
    if (all_ids[t].size() > 0) lists[t] = {.ids = all_ids[t], .host_ids = {}, .groups = theirs[t]};
  std::vector<Tensor> handles;
  for (const Handles& found : tables.select(lists, RowAccess::train).tables)
    handles.push_back(found.handles.defined() ? found.handles
                                              : Tensor::empty({0}, DType::i64, tables.context()));
  return by_rank(all_ids, handles, all_values, theirs);
}

}  // namespace hstu
