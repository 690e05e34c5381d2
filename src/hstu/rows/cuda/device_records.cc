#include "hstu/rows/cuda/device_records.h"

#include <algorithm>
#include <atomic>

#include "hstu/base/error.h"
#include "hstu/device/pinned_memory.h"
#include "hstu/rows/row_format.h"
#include "hstu/rows/row_record.h"

namespace hstu::cuda {
namespace {

static_assert(sizeof(RowHeader) == kRowHeaderBytes);

std::shared_ptr<RowReport> new_report(Device device) {
  auto* const memory = transfer_memory(device);
  return {new (memory->allocate(sizeof(RowReport))) RowReport,
          [memory](RowReport* report) { memory->deallocate(report, sizeof(RowReport)); }};
}

Tensor upload_rows(const float* rows, std::int64_t n, std::int64_t width, const Context& context) {
  Tensor tensor = Tensor::empty({n, width}, DType::f32, context);
  copy_bytes(tensor.mutable_raw(), rows, tensor.bytes(), context.stream);
  return tensor;
}

}  // namespace

DeviceRecords::DeviceRecords(const RowShape& shape, const Context& context)
    : shape_(shape),
      context_{context.stream, context.memory, nullptr},
      record_bytes_(record_bytes(shape)),
      rounding_key_(rounding_key(shape)),
      shift_(chunk_shift(shape)),
      report_(new_report(context.device())),
      uploads_(context.stream) {}

RowTable DeviceRecords::table() const {
  const InitialValue& initial = shape_.initial;
  const bool is_constant = initial.kind == InitialKind::constant;
  const bool is_normal = initial.kind == InitialKind::normal || initial.kind == InitialKind::truncated_normal;
  return {.chunks = reinterpret_cast<std::byte* const*>(chunks_.raw()),
          .report = report_.get(),
          .record_bytes = record_bytes_,
          .shift = shift_,
          .initial = initial.kind,
          .spread = is_normal ? initial.deviation : shape_.bound,
          .middle = is_constant ? initial.value
                    : is_normal ? initial.mean
                                : 0.0,
          .nominal_rows = shape_.rows,
          .dim = shape_.dim,
          .state_width = shape_.state_width,
          .state_begin = state_begin(shape_),
          .first_column = shape_.first_column,
          .key = shape_.key,
          .is_bf16 = shape_.dtype == DType::bf16,
          .rounding_key = rounding_key_};
}

std::int64_t DeviceRecords::bytes() const {
  std::size_t bytes = chunks_.bytes();
  for (const Tensor& records : records_) bytes += records.bytes();
  return static_cast<std::int64_t>(bytes);
}

void DeviceRecords::grow(std::int64_t lines) {
  const std::int64_t missing = ((lines - capacity() + (std::int64_t{1} << shift_) - 1) >> shift_);
  if (missing <= 0) return;
  const std::int64_t bytes = record_bytes_ << shift_;
  records_.push_back(Tensor::empty({missing * bytes}, DType::u8, context_));
  set_zero(records_.back().mutable_raw(), records_.back().bytes(), context_.stream);  // stamps of no number
  for (std::int64_t i = 0; i < missing; ++i)
    chunk_addresses_.push_back(records_.back().mutable_raw() + i * bytes);
  chunks_ = Tensor::empty({static_cast<std::int64_t>(chunk_addresses_.size() * sizeof(std::byte*))},
                          DType::u8, context_);
  copy_bytes(chunks_.mutable_raw(), chunk_addresses_.data(), chunks_.bytes(), context_.stream);
  context_.stream.synchronize();  // the addresses may move when the next ones are added
}

Tensor DeviceRecords::upload(std::span<const std::int64_t> numbers) const {
  const auto n = static_cast<std::int64_t>(numbers.size());
  Tensor there = Tensor::empty({n}, DType::i64, context_);
  auto* const block = uploads_.next<std::int64_t>(n);
  std::copy(numbers.begin(), numbers.end(), block);
  copy_bytes(there.mutable_raw(), block, there.bytes(), context_.stream);
  uploads_.in_use();
  return there;
}

void DeviceRecords::begin(std::span<const std::int64_t> lines, std::span<const std::int64_t> ids) {
  Tensor places = upload(lines);
  const Tensor names = upload(ids);
  begin_rows({.table = table(),
              .size = places.rows(),
              .ids = names.data<std::int64_t>(),
              .slots = places.mutable_data<std::int64_t>()},
             context_.stream.cuda());
}

void DeviceRecords::write(std::span<const std::int64_t> lines, const float* rows) {
  Tensor places = upload(lines);
  Tensor there = upload_rows(rows, places.rows(), shape_.dim + shape_.state_width, context_);
  write_rows({.table = table(),
              .size = places.rows(),
              .slots = places.mutable_data<std::int64_t>(),
              .values = there.mutable_data<float>()},
             context_.stream.cuda());
}

void DeviceRecords::read(std::span<const std::int64_t> lines, float* rows) const {
  Tensor places = upload(lines);
  Tensor there = Tensor::empty({places.rows(), shape_.dim + shape_.state_width}, DType::f32, context_);
  read_rows({.table = table(),
             .size = places.rows(),
             .slots = places.mutable_data<std::int64_t>(),
             .values = there.mutable_data<float>()},
            context_.stream.cuda());
  copy_bytes(rows, there.raw(), there.bytes(), context_.stream);
}

void DeviceRecords::exchange(std::span<const Exchange> rows, Pace pace) {
  const auto bytes = static_cast<std::int64_t>(rows.size_bytes());
  const Tensor there = Tensor::empty({bytes}, DType::u8, context_);
  copy_bytes(const_cast<std::byte*>(there.raw()), reinterpret_cast<const std::byte*>(rows.data()),
             there.bytes(), context_.stream);
  exchange_rows(table(), reinterpret_cast<const Exchange*>(there.raw()),
                static_cast<std::int64_t>(rows.size()), pace, context_.stream.cuda());
}

void DeviceRecords::check_updates() const {
  require(std::atomic_ref(report_->twice).load(std::memory_order_acquire) == 0,
          "expected every row once, found a row of the update twice");
}

}  // namespace hstu::cuda
