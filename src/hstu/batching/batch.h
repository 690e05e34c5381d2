// Batch: the input of a step, in one slab of memory with a table of columns, so that one copy transfers it to
// a device. Alphabet: B samples, T tokens.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hstu/batching/route.h"
#include "hstu/tensor/tensor.h"

namespace hstu {

// Slabs are allocated from a std::pmr::memory_resource, which can provide pinned memory.
using BatchMemory = std::pmr::memory_resource;

// Columns of every batch, (B) each. A model's layout adds its own, and for each feature NAME.ids (the
// distinct ids, i64) and NAME.index (i32: the row of `ids` for each token, item or sample; -1 for none).
inline constexpr std::string_view kUserColumn = "sample.user";          // i64, original ids
inline constexpr std::string_view kPositionColumn = "sample.position";  // i64, event in the dataset: the name
inline constexpr std::string_view kLabelColumn = "sample.label";        // f32, 0 or 1
inline constexpr std::string_view kRealColumn = "sample.real";          // f32, 1; 0 for padding
inline constexpr std::string_view kWorkColumn = "sample.work";          // i64, FLOPs of the forward pass
// (B + 1) i64: the tokens of sample b are [offsets[b], offsets[b + 1]).
inline constexpr std::string_view kTokenOffsetsColumn = "token.offsets";

std::string ids_column(std::string_view feature);    // "NAME.ids"
std::string index_column(std::string_view feature);  // "NAME.index"

// Ids of one feature outside [0, rows) of its table, found in one batch.
struct BadIdCount {
  std::string feature;
  std::int64_t occurrences = 0;  // tokens or samples that have such an id
  std::int64_t first_id = 0;     // of the first sample that has one
  std::int64_t first_user = 0, first_position = 0;
};

struct HistoryKeys;  // hstu/ops/history_keys.h

class Batch {
 public:
  struct Column {
    std::string name;
    DType type = DType::u8;
    std::int64_t offset = 0;  // bytes from the beginning of the slab, a multiple of kAlignment
    Shape shape;

    std::size_t elements() const {
      std::int64_t n = 1;
      for (const std::int64_t extent : shape) n *= extent;
      return static_cast<std::size_t>(n);
    }
  };
  static constexpr std::int64_t kAlignment = 256;

  explicit Batch(BatchMemory* memory = std::pmr::get_default_resource()) : memory_(memory) {}
  Batch(Batch&&) noexcept = default;
  Batch& operator=(Batch&&) noexcept = default;

  // Removes all columns and counts; keeps the memory.
  void clear();
  // Reserves memory for columns of `bytes` bytes in total: adding columns within it does not relocate others.
  void reserve(std::int64_t bytes);
  // Bytes that a column of this many elements takes.
  template <typename T>
  static std::int64_t column_bytes(std::int64_t elements) {
    return (elements * static_cast<std::int64_t>(sizeof(T)) + kAlignment - 1) / kAlignment * kAlignment;
  }
  // Adds a column of uninitialised elements, valid until the next column is added beyond what reserve() got.
  // Throws InternalError if the name is used.
  template <typename T>
  std::span<T> add(std::string_view name, const Shape& shape) {
    std::byte* const data = add_column(name, dtype_of<T>(), shape);
    return {reinterpret_cast<T*>(data), columns_.back().elements()};
  }

  bool has(std::string_view name) const { return find(name) != nullptr; }
  // The values of a column in host memory. Throws InternalError naming the existing columns, or the type.
  template <typename T>
  std::span<const T> values(std::string_view name) const {
    const Column& column = find(name, dtype_of<T>());
    return {reinterpret_cast<const T*>(slab_.get() + column.offset), column.elements()};
  }
  // The same as a tensor, for ops, on the device of the last copy_to(); it refers to the batch's memory:
  // valid until clear().
  Tensor tensor(std::string_view name) const;
  // The same in host memory.
  Tensor host_tensor(std::string_view name) const;

  // Routes, one for each feature in their order, of tables whose rows move between ranks; else none. A route
  // takes route_bytes() of the slab.
  static std::int64_t route_bytes(std::int64_t n, int ranks) {
    return column_bytes<std::int64_t>(n) + column_bytes<std::int32_t>(n) + column_bytes<std::int64_t>(ranks);
  }
  struct NewRoute {  // uninitialised members of a Route, in host memory
    std::span<std::int64_t> ids;
    std::span<std::int32_t> positions;
    std::span<std::int64_t> counts;
  };
  NewRoute add_route(std::int64_t n, int ranks);
  std::size_t routes() const { return routes_.size(); }
  Route route(std::size_t feature) const;

  // Copies the slab to the context's device, on its stream; values() still reads the host's. The slab must
  // not change until the copy on the stream is complete. The memory of the copy is kept for the next one:
  // what reads a copy on another stream must be ordered before the next by events. Copies nothing if that
  // device is the host.
  void copy_to(const Context& context) { copy_to(context, copy_); }
  // The same to `memory`, which is replaced where it is too small. Batches whose copies the stream reads one
  // after the other may have the same.
  void copy_to(const Context& context, Tensor& memory);

  const std::vector<Column>& columns() const { return columns_; }
  std::span<const std::byte> slab() const { return {slab_.get(), static_cast<std::size_t>(used_)}; }

  std::int64_t number = 0;      // of this part among those of its loader: its name between steps
  std::int64_t samples = 0;     // B
  std::int64_t anchors = 0;     // samples without those of negatives
  std::int64_t tokens = 0;      // T, of all sequences: contextual, history, candidate
  std::int64_t longest = 0;     // tokens of the longest sequence
  std::int64_t supervised = 0;  // examples with a loss in the global batch: of all parts and ranks
  // (B) the place of each sample's anchor in the global batch, from 0; of one rank empty: its samples are in
  // order.
  std::vector<std::int64_t> places;
  std::vector<BadIdCount> bad_ids;
  // Of earlier tokens of the samples, and where those of its own are kept; null: samples are complete.
  const HistoryKeys* history_keys = nullptr;

 private:
  std::byte* add_column(std::string_view name, DType type, Shape shape);
  Column make_room(std::string_view name, DType type, const Shape& shape);
  Tensor host_tensor(const Column& column) const;
  Tensor tensor(const Column& column) const;
  const Column& find(std::string_view name, DType type) const;
  const Column* find(std::string_view name) const;

  BatchMemory* memory_;
  std::shared_ptr<std::byte> slab_;
  Tensor copy_;                           // memory for the slab on another device
  bool copied_ = false;                   // the columns are in copy_ too
  std::int64_t capacity_ = 0, used_ = 0;  // bytes
  std::vector<Column> columns_;
  std::vector<std::array<Column, 3>> routes_;  // without names: ids, positions, counts
};

}  // namespace hstu
