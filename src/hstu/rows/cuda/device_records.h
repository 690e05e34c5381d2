// DeviceRecords: the records of one table in a GPU's memory. Kernels find them by line.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "hstu/device/transfer_blocks.h"
#include "hstu/rows/cuda/row_kernels.h"
#include "hstu/rows/row_lines.h"
#include "hstu/tensor/tensor.h"

namespace hstu::cuda {

class DeviceRecords final : public RowLines {
 public:
  DeviceRecords(const RowShape& shape, const Context& context);

  const Context& context() const override { return context_; }
  std::int64_t bytes() const override;
  void grow(std::int64_t lines) override;
  void set_initial_bound(float bound) override { shape_.bound = bound; }
  void begin(std::span<const std::int64_t> lines, std::span<const std::int64_t> ids) override;
  void write(std::span<const std::int64_t> lines, const float* rows) override;
  void read(std::span<const std::int64_t> lines, float* rows) const override;
  void exchange(std::span<const Exchange> rows, Pace pace) override;

  // Without an index and the step of an update.
  RowTable table() const;
  DType dtype() const { return shape_.dtype; }
  std::int64_t capacity() const { return static_cast<std::int64_t>(chunk_addresses_.size()) << shift_; }
  RowReport& report() const { return *report_; }
  // A number for a creation, update or merge, never that of the one before.
  std::uint32_t next_number() { return ++number_; }
  std::uint32_t number() const { return number_; }
  // Throws InternalError if an update that has ended had a row twice.
  void check_updates() const;
  // The host's numbers on the device.
  Tensor upload(std::span<const std::int64_t> numbers) const;

 private:
  RowShape shape_;
  Context context_;
  std::int64_t record_bytes_;
  std::uint64_t rounding_key_;
  int shift_;  // a chunk holds 2^shift records
  std::vector<Tensor> records_;
  std::vector<std::byte*> chunk_addresses_;
  Tensor chunks_;  // chunk_addresses_ on the GPU
  std::uint32_t number_ = 0;
  std::shared_ptr<RowReport> report_;
  mutable TransferBlocks uploads_;
};

}  // namespace hstu::cuda
