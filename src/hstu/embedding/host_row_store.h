// Rows in host memory: a hash table from ids to slots, and chunks of rows with constant addresses.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hstu/embedding/row_index.h"
#include "hstu/embedding/row_storage.h"
#include "hstu/embedding/row_store.h"

namespace hstu {

// Every result is the same for any number of threads and any order of first touches.
class HostRowStore final : public RowStore {
 public:
  explicit HostRowStore(const RowShape& shape)
      : shape_(shape), values_(shape.dim), state_(shape.state_width) {}

  std::int64_t rows() const override { return index_.size(); }
  std::int64_t bytes() const override;
  bool contains(std::int64_t id) const override { return index_.find(id) != RowIndex::kAbsent; }
  void find_slots(std::span<const std::int64_t> ids, std::int64_t* slots) const override;
  void create_slots(std::span<const std::int64_t> ids, std::int64_t* slots) override;
  void gather(std::span<const std::int64_t> ids, std::span<const std::int64_t> slots,
              float* out) const override;
  void update(std::span<const std::int64_t> slots, const float* gradients, const RowOptimizer& optimizer,
              double learning_rate) override;
  std::vector<Place> places_by_id() const override;
  void read(std::span<const std::int64_t> slots, float* values, float* state) const override;
  void import_rows(std::span<const std::int64_t> ids, const float* values, const float* state) override;

 private:
  bool in_range(std::int64_t id) const { return id >= 0 && id < shape_.rows; }

  RowShape shape_;
  RowIndex index_;
  RowStorage values_;
  RowStorage state_;
  std::vector<std::uint32_t> last_update_;  // [slot] number of the last update() of the row
  std::uint32_t updates_ = 0;
};

}  // namespace hstu
