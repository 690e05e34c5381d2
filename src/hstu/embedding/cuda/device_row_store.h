// DeviceRowStore: one table's rows in a GPU's memory, as the host manages them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "hstu/embedding/cuda/row_kernels.h"
#include "hstu/embedding/row_store.h"
#include "hstu/tensor/tensor.h"

namespace hstu::cuda {

class DeviceRowStore final : public RowStore {
 public:
  DeviceRowStore(const RowShape& shape, const Context& context);

  std::int64_t rows() const override;
  std::int64_t bytes() const override;
  bool contains(std::int64_t id) const override;
  void find_slots(std::span<const std::int64_t> ids, std::int64_t* slots) const override;
  void create_slots(std::span<const std::int64_t> ids, std::int64_t* slots) override;
  void gather(std::span<const std::int64_t> ids, std::span<const std::int64_t> slots,
              float* out) const override;
  void update(std::span<const std::int64_t> slots, const float* gradients, const RowOptimizer& optimizer,
              double learning_rate) override;
  std::vector<Place> places_by_id() const override;
  void read(std::span<const std::int64_t> slots, float* values, float* state) const override;
  void import_rows(std::span<const std::int64_t> ids, const float* values, const float* state) override;

  // For verbs over several stores.
  RowTable table() const;
  const Context& context() const { return context_; }
  // Makes room for `more` new rows; the next creation has this many ids at most.
  void reserve(std::int64_t more);
  // A number for a creation, update or merge, never that of the one before.
  std::uint32_t next_number() { return ++number_; }
  std::uint32_t number() const { return number_; }
  // `when`: the creation with this number is on the stream before it.
  void created(std::uint32_t number, Event when) {
    last_creation_ = number;
    created_ = std::move(when);
  }
  // Throws InternalError if an update that has ended had a row twice.
  void check_updates() const;

 private:
  std::int64_t rows_at_most() const;
  std::int64_t capacity() const { return static_cast<std::int64_t>(chunk_addresses_.size()) << shift_; }
  std::int64_t index_size() const { return entries_.defined() ? entries_.rows() : 0; }
  void grow(std::int64_t rows, std::int64_t more);
  void grow_records(std::int64_t rows);
  void grow_index(std::int64_t rows);

  RowShape shape_;
  Context context_;
  std::int64_t record_bytes_;
  int shift_;  // a chunk holds 2^shift records
  std::vector<Tensor> records_;
  std::vector<std::byte*> chunk_addresses_;
  Tensor chunks_;             // chunk_addresses_ on the GPU
  Tensor entries_;            // (number of entries, 2)
  Tensor rows_;               // (1) rows in use
  std::int64_t pending_ = 0;  // ids of creations that the report does not count yet
  std::uint32_t number_ = 0, last_creation_ = 0;
  Event created_;
  std::shared_ptr<RowReport> report_;
};

}  // namespace hstu::cuda
