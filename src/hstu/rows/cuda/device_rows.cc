#include "hstu/rows/device_rows.h"

#include <algorithm>
#include <vector>

#include "hstu/base/error.h"
#include "hstu/device/stream.h"
#include "hstu/rows/cuda/device_row_store.h"

namespace hstu::cuda {
namespace {

// Of lists whose ids the GPU looks up.
DeviceRowStore& store_of(const DeviceRows& rows) {
  return static_cast<DeviceRowStore&>(*rows.store);
}

DeviceRecords& records_of(const DeviceRows& rows) {
  return static_cast<DeviceRecords&>(*rows.store->lines());
}

template <typename T>
T* data_of(const Tensor& tensor) {
  return tensor.defined() ? const_cast<T*>(tensor.data<T>()) : nullptr;
}

RowList list_of(const DeviceRows& rows, const RowTable& table, std::uint32_t number = 0) {
  return {.table = table,
          .size = rows.slots.defined()    ? rows.slots.size()
                  : rows.values.defined() ? rows.values.rows()
                                          : 0,
          .ids = data_of<std::int64_t>(rows.ids),
          .slots = data_of<std::int64_t>(rows.slots),
          .values = data_of<float>(rows.values),
          .number = number};
}

std::vector<RowList> lists_of(std::span<const DeviceRows> rows) {
  std::vector<RowList> lists;
  lists.reserve(rows.size());
  for (const DeviceRows& one : rows) lists.push_back(list_of(one, records_of(one).table()));
  return lists;
}

const Context& context_of(std::span<const DeviceRows> rows) {
  return records_of(rows.front()).context();
}

cudaStream_t stream_of(std::span<const DeviceRows> rows) {
  return context_of(rows).cuda().handle;
}

}  // namespace

std::unique_ptr<RowStore> make_row_store(const RowShape& shape, const Context& context) {
  return std::make_unique<DeviceRowStore>(shape, context);
}

void find_slots(std::span<const DeviceRows> rows) {
  if (rows.empty()) return;
  std::vector<RowList> lists;
  for (const DeviceRows& one : rows) lists.push_back(list_of(one, store_of(one).table()));
  find_rows(lists, stream_of(rows));
}

void create_slots(std::span<const DeviceRows> rows, std::size_t groups) {
  if (std::none_of(rows.begin(), rows.end(), [](const DeviceRows& one) { return one.slots.rows() > 0; }))
    return;
  const std::size_t tables = rows.size() / groups;
  // Room for all groups at once: the host waits for a creation where the room may not do.
  for (std::size_t t = 0; t < tables; ++t) {
    std::int64_t more = 0;
    for (std::size_t g = 0; g < groups; ++g) more += rows[g * tables + t].slots.rows();
    store_of(rows[t]).reserve(more);
  }
  const Stream& stream = context_of(rows).stream;
  for (std::size_t g = 0; g < groups; ++g) {
    std::vector<RowList> lists;
    for (const DeviceRows& one : rows.subspan(g * tables, tables))
      lists.push_back(list_of(one, store_of(one).table(), records_of(one).next_number()));
    create_rows(lists, stream_of(rows));
  }
  Event created(stream.device());
  created.record_later(stream);
  for (const DeviceRows& one : rows.first(tables)) store_of(one).created(records_of(one).number(), created);
}

void gather(std::span<const DeviceRows> rows) {
  if (rows.empty()) return;
  gather_rows(lists_of(rows), stream_of(rows));
}

void update(std::span<const DeviceRows> rows, double learning_rate, const float* factor) {
  std::vector<bool> done(rows.size());
  for (std::size_t first = 0; first < rows.size(); ++first) {
    if (done[first]) continue;
    std::vector<RowList> lists;
    for (std::size_t i = first; i < rows.size(); ++i) {
      DeviceRecords& records = records_of(rows[i]);
      if (rows[i].optimizer != rows[first].optimizer || records.dtype() != records_of(rows[first]).dtype())
        continue;
      done[i] = true;
      records.check_updates();
      lists.push_back(list_of(rows[i], records.table(), records.next_number()));
    }
    update_rows(lists, rows[first].optimizer, learning_rate, factor, stream_of(rows));
  }
}

void merge(std::span<const DeviceRows> rows, bool is_first_part) {
  if (rows.empty()) return;
  std::vector<RowList> lists;
  for (const DeviceRows& one : rows) {
    DeviceRecords& records = records_of(one);
    lists.push_back(list_of(one, records.table(), is_first_part ? records.next_number() : records.number()));
  }
  merge_gradients(lists, stream_of(rows));
}

std::optional<NotFiniteRow> first_not_finite(std::span<const DeviceRows> rows) {
  if (rows.empty()) return std::nullopt;
  const Context& context = context_of(rows);
  Tensor found = Tensor::empty({1}, DType::i64, context);
  auto* const place = reinterpret_cast<std::uint64_t*>(found.mutable_data<std::int64_t>());
  find_not_finite(lists_of(rows), place, context.stream.cuda());
  const auto first = static_cast<std::uint64_t>(found.to_host(context.stream).data<std::int64_t>()[0]);
  if (first == kAllFinite) return std::nullopt;
  return NotFiniteRow{static_cast<std::size_t>(first >> 40),
                      static_cast<std::int64_t>(first & ((std::uint64_t{1} << 40) - 1))};
}

}  // namespace hstu::cuda
