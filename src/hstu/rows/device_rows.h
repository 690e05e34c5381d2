// Rows in a GPU's memory: a RowStore per table, and the verbs over the stores of all tables, one launch each.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "hstu/rows/row_lines.h"
#include "hstu/rows/row_store.h"
#include "hstu/tensor/tensor.h"

namespace hstu {

// Rows of one table in the GPU's memory: ids (n) i64, each once; slots (n) i64; values (n, D) f32: rows or
// gradients. A verb needs only what it names.
struct DeviceRows {
  RowStore* store = nullptr;  // of cuda::make_row_store
  Tensor ids, slots, values;
  RowOptimizer optimizer = {};
};

// The first row of gradients that has a value that is not finite.
struct NotFiniteRow {
  std::size_t list = 0;
  std::int64_t row = 0;
};

// All but make_row_store put their work on the stores' stream. All throw Error in a build without CUDA.
namespace cuda {

// Rows in memory of the context's pool: a hash table and chunks with constant addresses, both of which grow.
// Contents equal those of HostRowStore: the same rows to the bit until the first update, which rounds
// differently. Growth waits for the stream; the other verbs do not.
std::unique_ptr<RowStore> make_row_store(const RowShape& shape, const Context& context);
// Records in memory of the context's pool, whose places the host assigns.
std::unique_ptr<RowLines> make_row_lines(const RowShape& shape, const Context& context);

void find_slots(std::span<const DeviceRows> lists);  // ids -> slots
// ids -> slots. The lists are `groups` equal groups, one after another: each id is once in a group.
void create_slots(std::span<const DeviceRows> lists, std::size_t groups = 1);
void gather(std::span<const DeviceRows> lists);  // ids, slots -> values
// One launch for each optimizer. `factor` (1) on the GPU, not null: nothing is updated if it is NaN.
void update(std::span<const DeviceRows> lists, double learning_rate, const float* factor = nullptr);
// Adds the gradients of rows that an earlier part of the batch had to the gradients there, and removes them
// here: their slots become negative. One call for each part, in order.
void merge(std::span<const DeviceRows> lists, bool is_first_part);
// Waits for the stream.
std::optional<NotFiniteRow> first_not_finite(std::span<const DeviceRows> lists);

}  // namespace cuda
}  // namespace hstu
