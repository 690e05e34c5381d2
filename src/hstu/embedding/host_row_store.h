// Rows in host memory: a hash table from ids to slots, a header for each row, and chunks of rows with
// constant addresses. A row that is removed leaves its slot to the next new row.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "hstu/base/random.h"
#include "hstu/embedding/row_storage.h"
#include "hstu/embedding/row_store.h"
#include "hstu/embedding/segments.h"
#include "hstu/embedding/slot_index.h"

namespace hstu {

// What a row has beside its values and its optimizer's state. `score` and `seen` belong to row_keeper.h.
struct HostRow {
  static constexpr std::int64_t kNoId = -1;  // a free slot
  static constexpr std::uint32_t kNew = std::numeric_limits<std::uint32_t>::max();

  std::int64_t id = kNoId;
  std::int64_t score = 0;
  std::uint32_t seen = kNew;  // the last step that trained the row; kNew: its first one has not ended
  std::uint32_t updated = 0;  // number of the last update() of the row
};

// Memory for `rows` rows, at most, but for the rounding to whole chunks.
constexpr std::int64_t host_table_bytes(const RowShape& shape, std::int64_t rows) {
  const std::int64_t row =
      (shape.dim + shape.state_width) * std::int64_t{sizeof(float)} + std::int64_t{sizeof(HostRow)};
  return rows * row + SlotIndex::most_bytes(rows);
}

// Every result is the same for any number of threads and any order of first touches.
class HostRowStore final : public RowStore {
 public:
  explicit HostRowStore(const RowShape& shape)
      : shape_(shape), values_(shape.dim), state_(shape.state_width) {}

  std::int64_t rows() const override { return slots_ - static_cast<std::int64_t>(free_.size()); }
  std::int64_t bytes() const override;
  bool contains(std::int64_t id) const override { return find(id) >= 0; }
  void find_slots(std::span<const std::int64_t> ids, std::int64_t* slots) const override;
  void create_slots(std::span<const std::int64_t> ids, std::int64_t* slots) override;
  void gather(std::span<const std::int64_t> ids, std::span<const std::int64_t> slots,
              float* out) const override;
  void update(std::span<const std::int64_t> slots, const float* gradients, const RowOptimizer& optimizer,
              double learning_rate) override;
  std::vector<Place> places_by_id() const override;
  void read(std::span<const std::int64_t> slots, float* values, float* state) const override;
  void import_rows(std::span<const std::int64_t> ids, const float* values, const float* state) override;

  // Slots are 0 .. slots() - 1; a free one has kNoId.
  std::int64_t slots() const { return slots_; }
  HostRow& row(std::int64_t slot) { return heads_[slot]; }
  const HostRow& row(std::int64_t slot) const { return heads_[slot]; }
  // Removes existing rows. Their slots may not be in use.
  void remove(std::span<const Place> rows);
  // The slots of the rows that create_slots() created since the last call, which begins the record of them.
  std::vector<std::int64_t> take_created();

 private:
  bool in_range(std::int64_t id) const { return id >= 0 && id < shape_.rows; }
  // The slot of `id`, kAbsent or kNull.
  std::int64_t find(std::int64_t id) const {
    if (!in_range(id)) return kNull;
    return index_.find(mix64(static_cast<std::uint64_t>(id)),
                       [&](std::uint32_t slot) { return heads_[slot].id == id; });
  }

  RowShape shape_;
  SlotIndex index_;
  Segments<HostRow> heads_;
  RowStorage values_;
  RowStorage state_;
  std::int64_t slots_ = 0;
  std::vector<std::uint32_t> free_;  // slots without a row
  std::uint32_t updates_ = 0;
  bool records_created_ = false;
  std::vector<std::int64_t> created_;
};

}  // namespace hstu
