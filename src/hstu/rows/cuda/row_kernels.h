// The work on rows in a GPU's memory: a kernel is launched once for the lists of up to 64 tables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <cuda_runtime_api.h>

#include "hstu/rows/initial_value.h"
#include "hstu/rows/row_lines.h"
#include "hstu/rows/row_optimizer.h"

namespace hstu::cuda {

// A row is one record: this header and the stored row (row_shape.h). Records are in chunks of 2^shift with
// constant addresses, in order of slots.
struct RowHeader {
  std::int64_t id;
  float* owner;         // the gradient that the others of this row are added to, where `stamp` is this merge
  std::uint32_t stamp;  // the last creation, update or merge that had this row
  std::uint32_t unused[3];
};

// Open addressing with linear probing, as RowIndex.
struct IndexEntry {
  std::int64_t id;  // kNoId: empty
  std::int64_t slot;
};
inline constexpr std::int64_t kNoId = -1;  // ids of rows are 0 .. V - 1
inline constexpr int kFilled = 0xff;       // every byte of an empty entry

// What the GPU tells the host without being asked: page-locked memory that kernels write.
struct RowReport {
  std::int64_t rows = 0;       // in use ...
  std::uint32_t creation = 0;  // ... after this call of create()
  std::uint32_t twice = 0;     // 1: an update had a row twice
};

struct RowTable {
  IndexEntry* entries = nullptr;
  std::int64_t mask = -1;  // number of entries - 1
  std::byte* const* chunks = nullptr;
  std::int64_t* rows = nullptr;  // in use
  RowReport* report = nullptr;
  std::int64_t record_bytes = 0;
  int shift = 0;
  InitialKind initial = InitialKind::uniform;
  double spread = 0, middle = 0;  // of initial values: bound or deviation; mean or constant
  std::int64_t nominal_rows = 0;
  std::int64_t dim = 0, state_width = 0, state_begin = 0;
  std::int64_t first_column = 0;  // of the D values in the whole row
  std::uint64_t key = 0;
  bool is_bf16 = false;  // the values; then updates depend on the step and round by this key (row_format.h)
  std::int64_t step = 0;
  std::uint64_t rounding_key = 0;
};

// Rows of one table. A function reads what its comment names, the table, the size and, where it creates,
// updates or merges, the number.
struct RowList {
  RowTable table;
  std::int64_t size = 0;              // n
  const std::int64_t* ids = nullptr;  // (n) each once
  std::int64_t* slots = nullptr;      // (n)
  float* values = nullptr;            // (n, D), or gradients
  std::uint32_t number = 0;           // of the call: never that of the call before
};

// slots of ids.
void find_rows(std::span<const RowList> lists, cudaStream_t stream);
// The same; missing rows are created with their initial values. The tables have room for all.
void create_rows(std::span<const RowList> lists, cudaStream_t stream);
// values: the rows at `slots`; initial values of `ids` where a row is absent, zeros for the null row.
void gather_rows(std::span<const RowList> lists, cudaStream_t stream);
// Updates the rows of `ids` at `slots` (each once) by the gradients in `values`; skips negative slots. All
// tables have one type of values.
// Without ids they are those of the records, which an exchange with host memory does not set.
// `factor` (1), not null: nothing is updated if it is NaN.
void update_rows(std::span<const RowList> lists, const RowOptimizer& optimizer, double learning_rate,
                 const float* factor, cudaStream_t stream);
// Lists of one `number` are parts of one batch, merged in order: adds the gradient of a row that an earlier
// list had to the gradient there, and sets the slot here to kMergedRow.
void merge_gradients(std::span<const RowList> lists, cudaStream_t stream);

// found (one): the first place of a value that is not finite, as list * 2^40 + row; kAllFinite if there is
// none.
inline constexpr std::uint64_t kAllFinite = ~std::uint64_t{0};
void find_not_finite(std::span<const RowList> lists, std::uint64_t* found, cudaStream_t stream);

// One list: ids (n) and stamps (n) of slots 0 .. n - 1.
void list_rows(const RowList& list, std::int64_t* ids, std::uint32_t* stamps, cudaStream_t stream);
// One list: gives the rows at `slots` the initial values of `ids`.
void begin_rows(const RowList& list, cudaStream_t stream);
// One list: values (n, D + state_width) are the rows at `slots` with their state, read or written.
void read_rows(const RowList& list, cudaStream_t stream);
void write_rows(const RowList& list, cudaStream_t stream);
// Rows (n) between lines and host memory, both ways at once.
void exchange_rows(const RowTable& table, const RowLines::Exchange* rows, std::int64_t n, Pace pace,
                   cudaStream_t stream);
// Puts the entries of `from` (n of them, some empty) into the empty index of `table`.
void rebuild_index(const IndexEntry* from, std::int64_t n, const RowTable& table, cudaStream_t stream);

}  // namespace hstu::cuda
