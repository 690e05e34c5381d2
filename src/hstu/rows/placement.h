// Placement: all tables of a model that are in one place: in host memory, in the memory of a GPU, or in
// tiers, a cache on a device over host memory or a disk. Callers select rows, read and update what they have
// selected, and do not know which place it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hstu/base/error.h"
#include "hstu/base/files.h"
#include "hstu/rows/row_directory.h"
#include "hstu/rows/row_optimizer.h"
#include "hstu/rows/row_shape.h"
#include "hstu/rows/rows_by_id.h"
#include "hstu/tensor/tensor.h"

namespace hstu {

// Whether a lookup creates missing rows.
enum class RowAccess {
  train,  // creates a missing row, with the value that evaluation read before, unless ids wait for one
  read,   // creates nothing
};

// A step reads more rows of a table than its cache has room for.
class CacheTooSmall : public UsageError {
 public:
  CacheTooSmall(std::int64_t step_rows, std::int64_t room)
      : UsageError(fmt::format("a step reads {} rows, and the cache has room for {}", step_rows, room)),
        rows(step_rows) {}
  std::int64_t rows;      // that would do, for what the step has read so far
  std::size_t table = 0;  // of the placement
};

// A cache `grows` to the rows of the largest step; otherwise it throws CacheTooSmall for such a step.
struct CacheSize {
  std::int64_t lines = 0;  // rows; 0: no cache, every row is on the device
  bool grows = false;
};
// Of a table in tiers: a cache on the device; below it all rows in host memory, or in a file of a new folder
// in `disk_folder`, below a cache in host memory of `host_rows` rows (0: none, where the device is the host).
struct Tiers {
  CacheSize cache = {};
  std::optional<Path> disk_folder = {};
  std::int64_t host_rows = 0;
};

struct PlacedTable {
  std::string name;  // for messages
  RowShape shape;
  RowOptimizer optimizer;
  bool lookups_create = true;  // those that train; else RowsById::create_slots() alone creates rows
  // Not null: of a table whose rows leave (row_limiter.h), which is not in DeviceRows.
  std::shared_ptr<RowDirectory> directory = {};
  Tiers tiers = {};
};

// The elements (n) of a tensor of i64 in host memory.
inline std::span<const std::int64_t> numbers(const Tensor& tensor) {
  return {tensor.data<std::int64_t>(), static_cast<std::size_t>(tensor.size())};
}

// Ids of one table that a batch reads.
struct TableIds {
  std::size_t table = 0;
  Tensor ids;       // (n) i64, on the device of the rows
  Tensor host_ids;  // (m) i64 in host memory, each once: the distinct ones of `ids`. Undefined: not known
  std::span<const std::int32_t> index = {};   // (n): ids[i] is host_ids[index[i]]; empty: ids are host_ids
  std::span<const std::int64_t> groups = {};  // sizes of groups, in each of which an id is once; empty: one
};

// Rows of one table that were selected.
struct Handles {
  std::size_t table = 0;  // of the placement
  Tensor ids;             // (n) i64: those of the caller
  Tensor handles;  // (n) i64, on the device of the rows: for the placement alone. Rows of it may be taken
  // In host memory, where the host finds the rows: ids, those of the caller; their slots, for RowLimiter.
  Tensor host_ids = {}, host_slots = {};
  // For the placement alone: rows (m, D) f32 from below a cache, and their places (m) i32 among the ids.
  Tensor below = {}, places_below = {};
};

struct RowUpdate {
  double learning_rate = 0;
  // (1) in the memory of the GPU, or null: nothing is updated if it is NaN (UpdateCheck::factor()).
  const float* factor = nullptr;
  std::int64_t step = 0;  // on which the rounding of bf16 depends
};

// Of a cache, since it was made. Rows are counted once a step.
struct CacheCounts {
  std::int64_t lines = 0;             // room for so many rows
  std::int64_t hits = 0, misses = 0;  // rows that were there when a step looked them up, and that were not
  std::int64_t prefetched = 0;        // rows that came before their step
  std::int64_t bytes_in = 0, bytes_out = 0;  // rows and state, into the cache and back
};
struct TableFigures {
  std::int64_t bytes = 0;            // memory taken by rows, state and index
  std::optional<CacheCounts> cache;  // of a table with one
};

// Work on a GPU is put on the stream of the placement. Lists are of different tables.
class Placement {
 public:
  virtual ~Placement() = default;

  // TableIds::host_ids are needed: the host finds the rows.
  virtual bool needs_host_ids() const = 0;
  // Handles in the order of `ids`, valid until the end of the step. Throws CacheTooSmall.
  virtual std::vector<Handles> select(std::span<const TableIds> ids, RowAccess access) = 0;
  // rows[i] (n, D) f32: those of selected[i].
  virtual void gather(std::span<const Handles> selected, std::span<Tensor> rows) const = 0;
  // One call for each part of a batch, in order, with a list for each table; an undefined gradient: none.
  // Adds the gradient of a row that an earlier part selected to the gradient there, and removes the row here.
  virtual void merge(std::span<const Handles> selected, std::span<Tensor> gradients, bool is_first_part) = 0;
  // Updates rows selected with RowAccess::train, each once, by gradients (n, D) f32. Throws InternalError if
  // a row is there twice; a GPU's does so by the next update.
  virtual void update(std::span<const Handles> selected, std::span<const Tensor> gradients,
                      const RowUpdate& update) = 0;
  // Brings rows of host_ids into caches, where there is room beside the rows of this step, while the device
  // computes. Changes no result.
  virtual void prefetch(std::span<const TableIds> /*ids*/) {}
  // After the updates of a step: rows that it has selected may leave caches.
  virtual void end_step() {}

  // For messages, of handles whose ids are not kept, which f32 tables in DeviceRows do without: the id of
  // the row at `place` of them. Waits for the stream.
  virtual std::int64_t id_of(const Handles& rows, std::int64_t place) const;

  virtual RowsById& by_id(std::size_t table) = 0;
  virtual TableFigures figures(std::size_t table) const = 0;
};

// HostRows: rows in host memory.
std::unique_ptr<Placement> host_rows(std::span<const PlacedTable> tables);
// TieredRows: rows that the host finds, in tiers or in the memory of `where` alone.
std::unique_ptr<Placement> tiered_rows(std::span<const PlacedTable> tables, const Context& where);

namespace cuda {
// DeviceRows: rows in memory of the context's pool, which the GPU finds: a hash table and chunks with
// constant addresses, both of which grow. Contents equal those of HostRows: the same rows to the bit until
// the first update, which rounds differently. Growth waits for the stream; the rest does not. Throws Error in
// a build without CUDA.
std::unique_ptr<Placement> device_rows(std::span<const PlacedTable> tables, const Context& context);
}  // namespace cuda

}  // namespace hstu
