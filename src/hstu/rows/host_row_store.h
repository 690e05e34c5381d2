// Rows in host memory: chunks of rows with constant addresses, at the slots of a RowDirectory.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "hstu/rows/placement.h"
#include "hstu/rows/row_directory.h"
#include "hstu/rows/row_format.h"
#include "hstu/rows/row_storage.h"

namespace hstu {

// Memory for `rows` rows, at most, but for the rounding to whole chunks.
constexpr std::int64_t host_table_bytes(const RowShape& shape, std::int64_t rows) {
  return rows * (value_floats(shape) + shape.state_width) * std::int64_t{sizeof(float)} +
         RowDirectory::most_bytes(rows);
}

// Rows of a chunk, of which the last one is half empty on average.
constexpr std::int64_t host_chunk_rows(const RowShape& shape) {
  constexpr std::int64_t kChunkBytes = std::int64_t{1} << 18;
  return std::max<std::int64_t>(1, kChunkBytes / (shape.dim * std::int64_t{sizeof(float)}));
}

// Every result is the same for any number of threads and any order of first touches.
class HostRowStore final : public RowsById {
 public:
  // `directory`: of a table without rows, whose ids are 0 .. V - 1; null: one of its own.
  explicit HostRowStore(const RowShape& shape, std::shared_ptr<RowDirectory> directory = nullptr)
      : shape_(shape),
        format_(shape),
        rows_(directory != nullptr ? std::move(directory) : std::make_shared<RowDirectory>(shape.rows)),
        directory_(*rows_),
        values_(value_floats(shape),
                host_chunk_rows(shape) * value_floats(shape) * std::int64_t{sizeof(float)}),
        state_(shape.state_width, host_chunk_rows(shape) * shape.state_width * std::int64_t{sizeof(float)}) {}

  std::int64_t rows() const override { return directory_.rows(); }
  std::int64_t bytes() const { return values_.bytes() + state_.bytes() + directory_.bytes(); }
  bool contains(std::int64_t id) const override { return directory_.find(id) >= 0; }
  // No other call may run at the same time as create_slots(), update() and import_rows().
  void find_slots(std::span<const std::int64_t> ids, std::int64_t* slots) const {
    directory_.find_slots(ids, slots);
  }
  void create_slots(std::span<const std::int64_t> ids, std::int64_t* slots) override;
  // out (n, D): the rows of `ids` (n) at `slots` (n).
  void gather(std::span<const std::int64_t> ids, std::span<const std::int64_t> slots, float* out) const;
  // Updates each row at `slots` (n, each once) by its gradient (n, D). Ignores negative slots. Throws
  // InternalError naming the place if a slot occurs twice.
  void update(std::span<const std::int64_t> slots, const float* gradients, const RowOptimizer& optimizer,
              const RowUpdate& update);
  void set_initial_bound(float bound) override { format_.set_initial_bound(bound); }
  std::vector<RowPlace> places_by_id() const override { return directory_.places_by_id(); }
  std::int64_t begin_changes() override { return directory_.begin_changes(); }
  std::vector<RowPlace> changed_by_id(std::int64_t since) const override {
    return directory_.changed_by_id(since);
  }
  void read(std::span<const std::int64_t> slots, float* values, float* state) const override;
  void import_rows(std::span<const std::int64_t> ids, const float* values, const float* state) override;

 private:
  RowShape shape_;
  RowFormat format_;
  std::shared_ptr<RowDirectory> rows_;
  RowDirectory& directory_;
  RowStorage values_;
  RowStorage state_;
};

}  // namespace hstu
