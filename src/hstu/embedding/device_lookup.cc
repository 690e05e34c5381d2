#include "hstu/embedding/device_lookup.h"

#include <utility>

#include "hstu/base/error.h"
#include "hstu/embedding/changed_rows.h"

namespace hstu {

DeviceLookup::DeviceLookup(TableSet& tables, std::vector<Route> routes)
    : tables_(tables), routes_(std::move(routes)), counted_(tables.device()) {
  require(routes_.size() == tables.size(), "expected routes of {} tables, found {}", tables.size(),
          routes_.size());
  std::vector<Tensor> ids;
  for (const Route& route : routes_) {
    ids.push_back(route.ids);
    asked_.emplace_back(route.counts.begin(), route.counts.end());
  }
  served_ = exchange_counts(asked_, tables.comm());
  served_ids_ = new_tensors(tables, served_, DType::i64);
  exchange(tables, ids, asked_, served_ids_, served_);
  exchange_host_ids();
}

// One exchange for all placed tables.
void DeviceLookup::exchange_host_ids() {
  std::vector<std::size_t> placed;
  for (std::size_t t = 0; t < tables_.size(); ++t)
    if (tables_[t].placed() != nullptr) placed.push_back(t);
  if (placed.empty()) return;
  const std::size_t ranks = served_.front().size();
  std::vector<std::int64_t> send;
  Counts counts(ranks, 0);
  std::vector<std::size_t> sent(tables_.size(), 0);
  for (std::size_t r = 0; r < ranks; ++r) {
    for (const std::size_t t : placed) {
      const auto ids = routes_[t].host_ids.subspan(sent[t], static_cast<std::size_t>(asked_[t][r]));
      send.insert(send.end(), ids.begin(), ids.end());
      sent[t] += ids.size();
      counts[r] += asked_[t][r];
    }
  }
  const std::vector<std::int64_t> received =
      tables_.comm().all_to_all(std::span<const std::int64_t>(send), counts);
  std::vector<std::vector<std::int64_t>> ids(tables_.size());
  auto at = received.begin();
  for (std::size_t r = 0; r < ranks; ++r) {
    for (const std::size_t t : placed) {
      ids[t].insert(ids[t].end(), at, at + served_[t][r]);
      at += served_[t][r];
    }
  }
  for (const std::vector<std::int64_t>& of_table : ids) {
    served_host_ids_.push_back(Tensor::from<std::int64_t>({std::ssize(of_table)}, of_table));
    distinct_.push_back(unique(of_table));
  }
}

void DeviceLookup::prefetch() {
  if (distinct_.empty()) return;
  std::vector<Tensor> ids;
  for (const UniqueIds& of_table : distinct_)
    ids.push_back(Tensor::from<std::int64_t>({std::ssize(of_table.ids)}, of_table.ids));
  tables_.prefetch(ids);
}

void DeviceLookup::read_ahead() {
  sent_ = tables_.gather(select(RowAccess::read));
  arrived_ = send(sent_);
}

RowSelection DeviceLookup::select(RowAccess access) const {
  RowSelection selection = tables_.select_placed(served_ids_, access, served_host_ids_, distinct_);
  const std::vector<Tensor> slots = slots_of(tables_, served_ids_, served_, access);
  for (std::size_t t = 0; t < tables_.size(); ++t)
    if (tables_[t].placed() == nullptr) selection.tables[t] = {served_ids_[t], slots[t]};
  return selection;
}

std::vector<Tensor> DeviceLookup::send(std::vector<Tensor> answers) const {
  const DType type = tables_.wire().rows;
  std::vector<WireRows> packed;
  for (std::size_t t = 0; t < tables_.size(); ++t) {
    if (wire_type(tables_, t, type) == DType::f32) continue;
    packed.push_back({answers[t], {}, Tensor::empty(answers[t].shape(), type, tables_.context())});
    answers[t] = packed.back().wire;
  }
  to_wires(packed, tables_);
  std::vector<Tensor> arrived = new_rows(tables_, asked_, type);
  exchange(tables_, answers, served_, arrived, asked_);
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
    const std::vector<Tensor> before = parts_of(sent_[t], served_[t]), now = parts_of(now_[t], served_[t]),
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
  std::vector<Tensor> out = new_rows(tables_, out_counts, type), in = new_rows(tables_, in_counts, type);
  std::vector<Tensor> in_places = new_tensors(tables_, in_counts, DType::i32);

  make_f32(arrived_, tables_);
  std::vector<DeviceMessage> sends, receives;
  std::vector<WireRows> packed, unpacked;
  for (std::size_t t = 0; t < tables_.size(); ++t) {
    const std::vector<Tensor> now = parts_of(now_[t], served_[t]), places = parts_of(changed_[t], served_[t]),
                              sent = parts_of(out[t], out_counts[t]),
                              arrived = parts_of(arrived_[t], asked_[t]),
                              new_places = parts_of(in_places[t], in_counts[t]),
                              received = parts_of(in[t], in_counts[t]);
    for (std::size_t r = 0; r < now.size(); ++r) {
      packed.push_back({now[r], places[r].row_range(0, out_counts[t][r]), sent[r]});
      unpacked.push_back({arrived[r], new_places[r], received[r]});
      for (const Tensor& part : {packed.back().places, sent[r]}) add_message(part, r, sends);
      for (const Tensor& part : {new_places[r], received[r]}) add_message(part, r, receives);
    }
  }
  to_wires(packed, tables_);
  tables_.gpus()->exchange(sends, receives, tables_.stream());
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
    fetched.rows.push_back(Tensor::empty(arrived_[t].shape(), DType::f32, tables_.context()));
    lists.push_back({fetched.rows[t], routes_[t].places, arrived_[t]});
    sent.tables.push_back({routes_[t].ids, routes_[t].places, asked_[t], served_[t], served_ids_[t],
                           selection.tables[t].slots});
  }
  from_wires(lists, tables_);
  fetched.sent = std::make_shared<const SentRows>(std::move(sent));
  return fetched;
}

}  // namespace hstu
