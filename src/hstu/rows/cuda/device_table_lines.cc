#include "hstu/rows/cuda/device_table_lines.h"

#include "hstu/rows/not_finite_row.h"

namespace hstu::cuda {
namespace {

template <typename T>
T* data_of(const Tensor& tensor) {
  return tensor.defined() ? const_cast<T*>(tensor.data<T>()) : nullptr;
}

}  // namespace

RowList row_list(const TableLines::List& list, const RowTable& table, std::uint32_t number) {
  return {.table = table,
          .size = list.lines.defined()    ? list.lines.size()
                  : list.values.defined() ? list.values.rows()
                                          : 0,
          .ids = data_of<std::int64_t>(list.ids),
          .slots = data_of<std::int64_t>(list.lines),
          .values = data_of<float>(list.values),
          .number = number};
}

DeviceTableLines::DeviceTableLines(std::span<const PlacedTable> tables, const Context& context)
    : context_(context) {
  for (const PlacedTable& table : tables) {
    optimizers_.push_back(table.optimizer);
    records_.push_back(std::make_unique<DeviceRecords>(table.shape, context));
  }
}

void DeviceTableLines::gather(std::span<const List> lists) const {
  if (lists.empty()) return;
  std::vector<RowList> rows;
  rows.reserve(lists.size());
  for (const List& list : lists) rows.push_back(row_list(list, of(list.table).table()));
  gather_rows(rows, context_.stream.cuda());
}

void DeviceTableLines::update(std::span<const List> lists, const RowUpdate& update) {
  std::vector<bool> done(lists.size());
  for (std::size_t first = 0; first < lists.size(); ++first) {
    if (done[first]) continue;
    const RowOptimizer& optimizer = optimizers_[lists[first].table];
    const DType type = of(lists[first].table).dtype();
    std::vector<RowList> rows;
    for (std::size_t i = first; i < lists.size(); ++i) {
      DeviceRecords& records = of(lists[i].table);
      if (optimizers_[lists[i].table] != optimizer || records.dtype() != type) continue;
      done[i] = true;
      records.check_updates();
      RowList list = row_list(lists[i], records.table(), records.next_number());
      list.table.step = update.step;
      if (type == DType::f32) list.ids = nullptr;  // those of the records do
      rows.push_back(list);
    }
    update_rows(rows, optimizer, update.learning_rate, update.factor, context_.stream.cuda());
  }
}

void DeviceTableLines::merge(std::span<const List> lists, bool is_first_part) {
  if (lists.empty()) return;
  std::vector<RowList> rows;
  for (const List& list : lists) {
    DeviceRecords& records = of(list.table);
    rows.push_back(row_list(list, records.table(), is_first_part ? records.next_number() : records.number()));
  }
  merge_gradients(rows, context_.stream.cuda());
}

std::unique_ptr<TableLines> make_table_lines(std::span<const PlacedTable> tables, const Context& where) {
  return std::make_unique<DeviceTableLines>(tables, where);
}

std::optional<NotFiniteRow> first_not_finite(std::span<const Tensor> tensors, const Context& context) {
  std::vector<RowList> lists;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].defined()) continue;
    places.push_back(i);
    lists.push_back({.table = {.dim = tensors[i].cols()},
                     .size = tensors[i].rows(),
                     .values = data_of<float>(tensors[i])});
  }
  if (lists.empty()) return std::nullopt;
  Tensor found = Tensor::empty({1}, DType::i64, context);
  auto* const place = reinterpret_cast<std::uint64_t*>(found.mutable_data<std::int64_t>());
  find_not_finite(lists, place, context.stream.cuda());
  const auto first = static_cast<std::uint64_t>(found.to_host(context.stream).data<std::int64_t>()[0]);
  if (first == kAllFinite) return std::nullopt;
  return NotFiniteRow{places[static_cast<std::size_t>(first >> 40)],
                      static_cast<std::int64_t>(first & ((std::uint64_t{1} << 40) - 1))};
}

}  // namespace hstu::cuda
