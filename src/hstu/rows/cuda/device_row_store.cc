#include "hstu/rows/cuda/device_row_store.h"

#include <algorithm>
#include <atomic>

#include "hstu/base/error.h"
#include "hstu/device/pinned_memory.h"
#include "hstu/rows/row_record.h"

namespace hstu::cuda {
namespace {

static_assert(sizeof(IndexEntry) == kIndexEntryBytes);

template <typename T>
T read_of(const T& written_by_gpu) {
  return std::atomic_ref(const_cast<T&>(written_by_gpu)).load(std::memory_order_acquire);
}

template <typename T>
void download(const Tensor& from, T* to, const Stream& stream) {
  copy_bytes(to, from.raw(), from.bytes(), stream);
  stream.synchronize();
}

}  // namespace

DeviceRowStore::DeviceRowStore(const RowShape& shape, DeviceRecords& records)
    : shape_(shape),
      records_(records),
      rows_(Tensor::zeros({1}, DType::i64, records.context())),
      blocks_(records.context().stream) {}

RowTable DeviceRowStore::table() const {
  RowTable table = records_.table();
  table.entries = reinterpret_cast<IndexEntry*>(const_cast<std::byte*>(entries_.raw()));
  table.mask = index_size() - 1;
  table.rows = const_cast<std::int64_t*>(rows_.data<std::int64_t>());
  return table;
}

std::int64_t DeviceRowStore::rows() const {
  std::int64_t rows = 0;
  download(rows_, &rows, context().stream);
  return rows;
}

std::int64_t DeviceRowStore::bytes() const {
  return records_.bytes() + static_cast<std::int64_t>(entries_.bytes() + rows_.bytes());
}

bool DeviceRowStore::contains(std::int64_t id) const {
  const Tensor there = records_.upload(std::span(&id, 1));
  Tensor found = Tensor::empty({1}, DType::i64, context());
  const RowList list{.table = table(),
                     .size = 1,
                     .ids = there.data<std::int64_t>(),
                     .slots = found.mutable_data<std::int64_t>()};
  find_rows(std::span(&list, 1), context().stream.cuda());
  std::int64_t slot = kAbsentRow;
  download(found, &slot, context().stream);
  return slot >= 0;
}

// What is known without waiting for the GPU.
std::int64_t DeviceRowStore::rows_at_most() const {
  const bool counted = read_of(records_.report().creation) == last_creation_;
  return read_of(records_.report().rows) + (counted ? 0 : pending_);
}

void DeviceRowStore::reserve(std::int64_t more) {
  if (read_of(records_.report().creation) == last_creation_) pending_ = 0;
  const auto is_short = [&](std::int64_t rows) {
    const std::int64_t needed = std::min(rows + more, shape_.rows);
    return needed > records_.capacity() || 2 * needed > index_size();
  };
  if (is_short(rows_at_most())) {
    created_.synchronize();  // not the stream, which may hold later work of the model
    pending_ = 0;
    const std::int64_t now = read_of(records_.report().rows);
    if (is_short(now)) grow(now, more);
  }
  pending_ += more;
}

void DeviceRowStore::grow(std::int64_t rows, std::int64_t more) {
  try {
    // An eighth more, so that a growing table does not wait in every step.
    records_.grow(std::min(rows + more + rows / 8, shape_.rows));
    grow_index(std::min(rows + more, shape_.rows));
  } catch (const OutOfMemory& error) {
    throw OutOfMemory(
        fmt::format("{}: an embedding table of {} rows grows by up to {}: set tables.place = \"host\", make "
                    "embedding_dim "
                    "smaller or give features fewer rows",
                    error.what(), rows, more));
  }
}

void DeviceRowStore::grow_index(std::int64_t rows) {
  const std::int64_t entries = std::max(index_size(), index_entries(rows));
  if (entries == index_size()) return;
  const std::int64_t before = index_size();
  const Tensor old = std::exchange(entries_, Tensor::empty({entries, 2}, DType::i64, context()));
  rebuild_index(reinterpret_cast<const IndexEntry*>(old.raw()), before, table(), context().stream.cuda());
}

void DeviceRowStore::create_slots(std::span<const std::int64_t> ids, std::int64_t* slots) {
  const Tensor there = records_.upload(ids);
  Tensor found = Tensor::empty({there.rows()}, DType::i64, context());
  reserve(there.rows());
  const std::uint32_t number = records_.next_number();
  const RowList list{.table = table(),
                     .size = there.rows(),
                     .ids = there.data<std::int64_t>(),
                     .slots = found.mutable_data<std::int64_t>(),
                     .number = number};
  create_rows(std::span(&list, 1), context().stream.cuda());
  if (there.rows() > 0) created(number, Event());  // the download below waits
  download(found, slots, context().stream);
}

// Creations, updates and merges take numbers from one counter, and mark their rows with them.
std::vector<RowPlace> DeviceRowStore::changed_by_id(std::int64_t since) const {
  const std::int64_t n = rows();
  Tensor ids = Tensor::empty({n}, DType::i64, context()), stamps = Tensor::empty({n}, DType::i32, context());
  list_rows({.table = table(), .size = n}, ids.mutable_data<std::int64_t>(),
            reinterpret_cast<std::uint32_t*>(stamps.mutable_data<std::int32_t>()), context().stream.cuda());
  std::vector<std::int64_t> of_slot(static_cast<std::size_t>(n));
  std::vector<std::uint32_t> last(static_cast<std::size_t>(n));
  download(ids, of_slot.data(), context().stream);
  download(stamps, last.data(), context().stream);
  std::vector<RowPlace> places;
  for (std::size_t slot = 0; slot < of_slot.size(); ++slot)
    if (std::int64_t{last[slot]} > since) places.push_back({of_slot[slot], static_cast<std::int64_t>(slot)});
  std::sort(places.begin(), places.end(), [](const RowPlace& a, const RowPlace& b) { return a.id < b.id; });
  return places;
}

void DeviceRowStore::import_rows(std::span<const std::int64_t> ids, const float* values, const float* state) {
  std::vector<std::int64_t> slots(ids.size());
  create_slots(ids, slots.data());
  write_parts(records_, shape_, slots, blocks_, values, state);
}

}  // namespace hstu::cuda
