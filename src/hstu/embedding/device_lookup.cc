#include "hstu/embedding/device_lookup.h"

#include <utility>

#include "hstu/base/error.h"
#include "hstu/embedding/changed_rows.h"
#include "hstu/rows/unique.h"

namespace hstu {

DeviceLookup::DeviceLookup(TableSet& tables, std::vector<Route> routes)
    : tables_(tables), routes_(std::move(routes)), counted_(tables.device()) {
  require(routes_.size() == tables.size(), "expected routes of {} tables, found {}", tables.size(),
          routes_.size());
  std::vector<Parts> ids;
  for (std::size_t t = 0; t < tables.size(); ++t) {
    asked_.emplace_back(routes_[t].counts.begin(), routes_[t].counts.end());
    ids.push_back(asked_parts(tables[t].owners(), routes_[t].ids, asked_[t]));
  }
  served_ = exchange_counts(asked_, tables.comm());
  served_ids_ = new_tensors(tables, served_, DType::i64);
  exchange(tables, ids, parts_of(served_ids_, served_));
  exchange_host_ids();
}

// One exchange for all tables whose rows the host finds.
void DeviceLookup::exchange_host_ids() {
  std::vector<std::size_t> on_host;
  std::vector<Parts> asked(tables_.size());
  for (std::size_t t = 0; t < tables_.size(); ++t) {
    if (!tables_[t].needs_host_ids()) continue;
    on_host.push_back(t);
    asked[t] = asked_parts(tables_[t].owners(), routes_[t].host_ids, asked_[t]);
  }
  if (on_host.empty()) return;
  const std::size_t ranks = served_.front().size();
  std::vector<std::int64_t> send;
  Counts counts(ranks, 0);
  for (std::size_t r = 0; r < ranks; ++r) {
    for (const std::size_t t : on_host) {
      const auto* const ids = asked[t][r].data<std::int64_t>();
      send.insert(send.end(), ids, ids + asked_[t][r]);
      counts[r] += asked_[t][r];
    }
  }
  const std::vector<std::int64_t> received =
      tables_.comm().all_to_all(std::span<const std::int64_t>(send), counts);
  std::vector<std::vector<std::int64_t>> ids(tables_.size());
  auto at = received.begin();
  for (std::size_t r = 0; r < ranks; ++r) {
    for (const std::size_t t : on_host) {
      ids[t].insert(ids[t].end(), at, at + served_[t][r]);
      at += served_[t][r];
    }
  }
  for (const std::vector<std::int64_t>& of_table : ids) {
    UniqueIds distinct = unique(of_table);
    distinct_.push_back(Tensor::from<std::int64_t>({std::ssize(distinct.ids)}, distinct.ids));
    index_.push_back(std::move(distinct.index));
  }
}

void DeviceLookup::prefetch() {
  if (!distinct_.empty()) tables_.prefetch(distinct_);
}

void DeviceLookup::read_ahead() {
  sent_ = tables_.gather(select(RowAccess::read));
  arrived_ = send(sent_);
}

RowSelection DeviceLookup::select(RowAccess access) const {
  std::vector<TableIds> lists;
  for (std::size_t t = 0; t < tables_.size(); ++t) {
    lists.push_back({.ids = served_ids_[t], .host_ids = {}, .groups = served_[t]});
    if (!tables_[t].needs_host_ids()) continue;
    lists.back().host_ids = distinct_[t];
    lists.back().index = index_[t];
  }
  return tables_.select(lists, access);
}

std::vector<Parts> DeviceLookup::send(const std::vector<Tensor>& answers) const {
  const DType type = tables_.wire().rows;
  std::vector<Tensor> wires = answers;
  std::vector<WireRows> packed;
  for (std::size_t t = 0; t < tables_.size(); ++t) {
    if (wire_type(tables_, t, type) == DType::f32) continue;
    wires[t] = Tensor::empty(answers[t].shape(), type, tables_.context());
    packed.push_back({answers[t], {}, wires[t]});
  }
  to_wires(packed, tables_);
  std::vector<Parts> arrived = new_rows(tables_, asked_, type, ColumnsOf::peer);
  exchange(tables_, parts_of(wires, served_), arrived);
  return arrived;
}

void DeviceLookup::find_changed() {
  if (sent_.empty()) return;
  now_ = tables_.gather(select(RowAccess::read));
  changed_ = new_tensors(tables_, served_, DType::i32);
  const auto ranks = static_cast<std::int64_t>(served_.front().size());
  Tensor counts =
      Tensor::zeros({static_cast<std::int64_t>(tables_.size()) * ranks}, DType::i64, tables_.context());
  std::vector<ChangedRows> lists;
  for (std::size_t t = 0; t < tables_.size(); ++t) {
    const Parts before = parts_of(sent_[t], served_[t]), now = parts_of(now_[t], served_[t]),
                places = parts_of(changed_[t], served_[t]);
    for (std::size_t r = 0; r < now.size(); ++r) {
      const std::int64_t list = std::ssize(lists);
      lists.push_back({before[r], now[r], places[r], counts.row_range(list, list + 1)});
    }
  }
  cuda::find_changed(lists, tables_.stream());
  auto* const host_counts = tables_.downloads().next<std::int64_t>(counts.size());
  copy_bytes(host_counts, counts.raw(), counts.bytes(), tables_.stream());
  counted_ = tables_.downloads().in_use();
  changed_counts_ = host_counts;
}

// Into arrived_, whose rows become f32.
void DeviceLookup::send_changed() {
  counted_.synchronize();
  std::vector<Counts> out_counts;
  for (std::size_t t = 0; t < tables_.size(); ++t)
    out_counts.emplace_back(changed_counts_ + t * served_[t].size(),
                            changed_counts_ + (t + 1) * served_[t].size());
  const std::vector<Counts> in_counts = exchange_counts(out_counts, tables_.comm());
  const DType type = tables_.wire().rows;
  const std::vector<Parts> now = parts_of(now_, served_),
                           out = new_rows(tables_, out_counts, type, ColumnsOf::me),
                           in = new_rows(tables_, in_counts, type, ColumnsOf::peer),
                           in_places = parts_of(new_tensors(tables_, in_counts, DType::i32), in_counts);
  std::vector<Parts> out_places = parts_of(changed_, served_);

  make_f32(arrived_, tables_);
  std::vector<WireRows> packed, unpacked;
  for (std::size_t t = 0; t < tables_.size(); ++t) {
    for (std::size_t r = 0; r < now[t].size(); ++r) {
      out_places[t][r] = out_places[t][r].row_range(0, out_counts[t][r]);
      packed.push_back({now[t][r], out_places[t][r], out[t][r]});
      unpacked.push_back({arrived_[t][r], in_places[t][r], in[t][r]});
    }
  }
  to_wires(packed, tables_);
  exchange(tables_, joined(out_places, out), joined(in_places, in));
  from_wires(unpacked, tables_);
}

FetchedRows DeviceLookup::finish(RowAccess access) {
  const RowSelection selection = select(access);
  if (sent_.empty()) {
    arrived_ = send(tables_.gather(selection));
  } else {
    if (changed_counts_ == nullptr) find_changed();
    send_changed();
  }
  FetchedRows fetched;
  SentRows sent;
  std::vector<WireRows> lists;
  for (std::size_t t = 0; t < tables_.size(); ++t) {
    const RowOwners& owners = tables_[t].owners();
    const Route& route = routes_[t];
    fetched.rows.push_back(
        Tensor::empty({route.ids.size(), tables_[t].config().dim}, DType::f32, tables_.context()));
    add_wire_rows(owners, fetched.rows[t], asked_parts(owners, route.positions, asked_[t]), arrived_[t],
                  lists);
    sent.tables.push_back(
        {route.ids, route.positions, asked_[t], served_[t], served_ids_[t], selection.tables[t].handles});
  }
  from_wires(lists, tables_);
  fetched.sent = std::make_shared<const SentRows>(std::move(sent));
  return fetched;
}

}  // namespace hstu
