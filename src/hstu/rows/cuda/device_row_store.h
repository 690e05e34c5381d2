// DeviceRowStore: one table's rows in a GPU's memory, with a hash table there, as the host manages them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "hstu/rows/cuda/device_records.h"
#include "hstu/rows/rows_by_id.h"
#include "hstu/tensor/tensor.h"

namespace hstu::cuda {

class DeviceRowStore final : public RowsById {
 public:
  // `records` must outlive it.
  DeviceRowStore(const RowShape& shape, DeviceRecords& records);

  std::int64_t rows() const override;
  std::int64_t bytes() const;
  bool contains(std::int64_t id) const override;
  void create_slots(std::span<const std::int64_t> ids, std::int64_t* slots) override;
  void set_initial_bound(float bound) override { records_.set_initial_bound(bound); }
  std::vector<RowPlace> places_by_id() const override { return changed_by_id(-1); }
  std::int64_t begin_changes() override { return records_.number(); }
  std::vector<RowPlace> changed_by_id(std::int64_t since) const override;
  void read(std::span<const std::int64_t> slots, float* values, float* state) const override {
    read_parts(records_, shape_, slots, blocks_, values, state);
  }
  void import_rows(std::span<const std::int64_t> ids, const float* values, const float* state) override;

  // For kernels: with the index.
  RowTable table() const;
  // Makes room for `more` new rows; the next creation has this many ids at most.
  void reserve(std::int64_t more);
  // `when`: the creation with this number is on the stream before it.
  void created(std::uint32_t number, Event when) {
    last_creation_ = number;
    created_ = std::move(when);
  }

 private:
  const Context& context() const { return records_.context(); }
  std::int64_t rows_at_most() const;
  std::int64_t index_size() const { return entries_.defined() ? entries_.rows() : 0; }
  void grow(std::int64_t rows, std::int64_t more);
  void grow_index(std::int64_t rows);

  RowShape shape_;
  DeviceRecords& records_;
  Tensor entries_;            // (number of entries, 2)
  Tensor rows_;               // (1) rows in use
  std::int64_t pending_ = 0;  // ids of creations that the report does not count yet
  std::uint32_t last_creation_ = 0;
  Event created_;
  mutable TransferBlocks blocks_;  // of reads and imports
};

}  // namespace hstu::cuda
