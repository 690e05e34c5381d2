#include "hstu/embedding/cuda/device_row_store.h"

#include <algorithm>
#include <atomic>

#include "hstu/base/error.h"
#include "hstu/device/pinned_memory.h"
#include "hstu/embedding/row_record.h"

namespace hstu::cuda {
namespace {

constexpr std::int64_t kBlockRows = 1 << 16;  // of imports
static_assert(sizeof(RowHeader) == kRowHeaderBytes && sizeof(IndexEntry) == kIndexEntryBytes);

std::shared_ptr<RowReport> new_report(Device device) {
  auto* const memory = transfer_memory(device);
  return {new (memory->allocate(sizeof(RowReport))) RowReport,
          [memory](RowReport* report) { memory->deallocate(report, sizeof(RowReport)); }};
}

template <typename T>
T read_of(const T& written_by_gpu) {
  return std::atomic_ref(const_cast<T&>(written_by_gpu)).load(std::memory_order_acquire);
}

// The host's numbers in the GPU's memory.
template <typename T>
Tensor upload(std::span<const T> values, const Context& context) {
  Tensor tensor = Tensor::empty({static_cast<std::int64_t>(values.size())}, dtype_of<T>(), context);
  copy_bytes(tensor.mutable_raw(), values.data(), tensor.bytes(), context.stream);
  return tensor;
}

template <typename T>
void download(const Tensor& from, T* to, const Stream& stream) {
  copy_bytes(to, from.raw(), from.bytes(), stream);
  stream.synchronize();
}

}  // namespace

DeviceRowStore::DeviceRowStore(const RowShape& shape, const Context& context)
    : shape_(shape),
      context_{context.stream, context.memory, nullptr},
      record_bytes_(record_bytes(shape)),
      shift_(chunk_shift(shape)),
      rows_(Tensor::zeros({1}, DType::i64, context)),
      report_(new_report(context.device())) {}

RowTable DeviceRowStore::table() const {
  return {.entries = reinterpret_cast<IndexEntry*>(const_cast<std::byte*>(entries_.raw())),
          .mask = index_size() - 1,
          .chunks = reinterpret_cast<std::byte* const*>(chunks_.raw()),
          .rows = const_cast<std::int64_t*>(rows_.data<std::int64_t>()),
          .report = report_.get(),
          .record_bytes = record_bytes_,
          .shift = shift_,
          .bound = shape_.bound,
          .nominal_rows = shape_.rows,
          .dim = shape_.dim,
          .state_width = shape_.state_width,
          .key = shape_.key};
}

std::int64_t DeviceRowStore::rows() const {
  std::int64_t rows = 0;
  download(rows_, &rows, context_.stream);
  return rows;
}

std::int64_t DeviceRowStore::bytes() const {
  std::size_t bytes = chunks_.bytes() + entries_.bytes() + rows_.bytes();
  for (const Tensor& records : records_) bytes += records.bytes();
  return static_cast<std::int64_t>(bytes);
}

bool DeviceRowStore::contains(std::int64_t id) const {
  std::int64_t slot = kAbsent;
  find_slots(std::span(&id, 1), &slot);
  return slot >= 0;
}

// What is known without waiting for the GPU.
std::int64_t DeviceRowStore::rows_at_most() const {
  const bool counted = read_of(report_->creation) == last_creation_;
  return read_of(report_->rows) + (counted ? 0 : pending_);
}

void DeviceRowStore::reserve(std::int64_t more) {
  if (read_of(report_->creation) == last_creation_) pending_ = 0;
  const auto is_short = [&](std::int64_t rows) {
    const std::int64_t needed = std::min(rows + more, shape_.rows);
    return needed > capacity() || 2 * needed > index_size();
  };
  if (is_short(rows_at_most())) {
    created_.synchronize();  // not the stream, which may wait for the model
    pending_ = 0;
    const std::int64_t now = read_of(report_->rows);
    if (is_short(now)) grow(now, more);
  }
  pending_ += more;
}

void DeviceRowStore::grow(std::int64_t rows, std::int64_t more) {
  try {
    // An eighth more, so that a growing table does not wait in every step.
    grow_records(std::min(rows + more + rows / 8, shape_.rows));
    grow_index(std::min(rows + more, shape_.rows));
  } catch (const OutOfMemory& error) {
    throw OutOfMemory(
        fmt::format("{}: an embedding table of {} rows grows by up to {}: set tables.place = \"host\", make "
                    "embedding_dim "
                    "smaller or give features fewer rows",
                    error.what(), rows, more));
  }
}

void DeviceRowStore::grow_records(std::int64_t rows) {
  const std::int64_t missing = ((rows - capacity() + (std::int64_t{1} << shift_) - 1) >> shift_);
  if (missing <= 0) return;
  const std::int64_t bytes = record_bytes_ << shift_;
  records_.push_back(Tensor::empty({missing * bytes}, DType::u8, context_));
  for (std::int64_t i = 0; i < missing; ++i)
    chunk_addresses_.push_back(records_.back().mutable_raw() + i * bytes);
  chunks_ = Tensor::empty({static_cast<std::int64_t>(chunk_addresses_.size() * sizeof(std::byte*))},
                          DType::u8, context_);
  copy_bytes(chunks_.mutable_raw(), chunk_addresses_.data(), chunks_.bytes(), context_.stream);
  context_.stream.synchronize();  // the addresses may move when the next ones are added
}

void DeviceRowStore::grow_index(std::int64_t rows) {
  const std::int64_t entries = std::max(index_size(), index_entries(rows));
  if (entries == index_size()) return;
  const std::int64_t before = index_size();
  const Tensor old = std::exchange(entries_, Tensor::empty({entries, 2}, DType::i64, context_));
  rebuild_index(reinterpret_cast<const IndexEntry*>(old.raw()), before, table(), context_.stream.cuda());
}

void DeviceRowStore::find_slots(std::span<const std::int64_t> ids, std::int64_t* slots) const {
  const Tensor there = upload(ids, context_);
  Tensor found = Tensor::empty({there.rows()}, DType::i64, context_);
  const RowList list{.table = table(),
                     .size = there.rows(),
                     .ids = there.data<std::int64_t>(),
                     .slots = found.mutable_data<std::int64_t>()};
  find_rows(std::span(&list, 1), context_.stream.cuda());
  download(found, slots, context_.stream);
}

void DeviceRowStore::create_slots(std::span<const std::int64_t> ids, std::int64_t* slots) {
  const Tensor there = upload(ids, context_);
  Tensor found = Tensor::empty({there.rows()}, DType::i64, context_);
  reserve(there.rows());
  const std::uint32_t number = next_number();
  const RowList list{.table = table(),
                     .size = there.rows(),
                     .ids = there.data<std::int64_t>(),
                     .slots = found.mutable_data<std::int64_t>(),
                     .number = number};
  create_rows(std::span(&list, 1), context_.stream.cuda());
  if (there.rows() > 0) created(number, Event());  // the download below waits
  download(found, slots, context_.stream);
}

void DeviceRowStore::gather(std::span<const std::int64_t> ids, std::span<const std::int64_t> slots,
                            float* out) const {
  const Tensor names = upload(ids, context_);
  Tensor places = upload(slots, context_);
  Tensor values = Tensor::empty({places.rows(), shape_.dim}, DType::f32, context_);
  const RowList list{.table = table(),
                     .size = places.rows(),
                     .ids = names.data<std::int64_t>(),
                     .slots = places.mutable_data<std::int64_t>(),
                     .values = values.mutable_data<float>()};
  gather_rows(std::span(&list, 1), context_.stream.cuda());
  download(values, out, context_.stream);
}

void DeviceRowStore::update(std::span<const std::int64_t> slots, const float* gradients,
                            const RowOptimizer& optimizer, double learning_rate) {
  Tensor places = upload(slots, context_);
  Tensor values = upload(std::span(gradients, slots.size() * static_cast<std::size_t>(shape_.dim)), context_);
  const RowList list{.table = table(),
                     .size = places.rows(),
                     .slots = places.mutable_data<std::int64_t>(),
                     .values = values.mutable_data<float>(),
                     .number = next_number()};
  update_rows(std::span(&list, 1), optimizer, learning_rate, context_.stream.cuda());
  context_.stream.synchronize();
  check_updates();
}

void DeviceRowStore::check_updates() const {
  require(read_of(report_->twice) == 0, "expected every row once, found a row of the update twice");
}

std::vector<RowStore::Place> DeviceRowStore::places_by_id() const {
  const std::int64_t n = rows();
  Tensor ids = Tensor::empty({n}, DType::i64, context_);
  list_ids({.table = table(), .size = n}, ids.mutable_data<std::int64_t>(), context_.stream.cuda());
  std::vector<std::int64_t> of_slot(static_cast<std::size_t>(n));
  download(ids, of_slot.data(), context_.stream);
  std::vector<Place> places(of_slot.size());
  for (std::size_t slot = 0; slot < places.size(); ++slot)
    places[slot] = {of_slot[slot], static_cast<std::int64_t>(slot)};
  std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) { return a.id < b.id; });
  return places;
}

void DeviceRowStore::read(std::span<const std::int64_t> slots, float* values, float* state) const {
  Tensor places = upload(slots, context_);
  const std::int64_t n = places.rows();
  Tensor rows, states;
  if (values != nullptr) rows = Tensor::empty({n, shape_.dim}, DType::f32, context_);
  if (state != nullptr) states = Tensor::empty({n, shape_.state_width}, DType::f32, context_);
  read_rows({.table = table(),
             .size = n,
             .slots = places.mutable_data<std::int64_t>(),
             .values = values != nullptr ? rows.mutable_data<float>() : nullptr,
             .state = state != nullptr ? states.mutable_data<float>() : nullptr},
            context_.stream.cuda());
  if (values != nullptr) download(rows, values, context_.stream);
  if (state != nullptr) download(states, state, context_.stream);
}

void DeviceRowStore::import_rows(std::span<const std::int64_t> ids, const float* values, const float* state) {
  for (std::size_t first = 0; first < ids.size(); first += kBlockRows) {
    const auto some = ids.subspan(first, std::min<std::size_t>(kBlockRows, ids.size() - first));
    std::vector<std::int64_t> slots(some.size());
    create_slots(some, slots.data());
    const auto part = [&](const float* from, std::int64_t width) {
      const auto columns = static_cast<std::size_t>(width);
      return upload(std::span(from + first * columns, some.size() * columns), context_);
    };
    Tensor places = upload(std::span<const std::int64_t>(slots), context_);
    Tensor rows = part(values, shape_.dim), states;
    if (shape_.state_width > 0) states = part(state, shape_.state_width);
    write_rows({.table = table(),
                .size = places.rows(),
                .slots = places.mutable_data<std::int64_t>(),
                .values = rows.mutable_data<float>(),
                .state = shape_.state_width > 0 ? states.mutable_data<float>() : nullptr},
               context_.stream.cuda());
    context_.stream.synchronize();
  }
}

}  // namespace hstu::cuda
