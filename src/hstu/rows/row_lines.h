// RowLines: rows with the state of their optimizer in the memory of a device, at lines 0, 1, ... A line knows
// no id: a store decides which row is where (tiered_row_store.h).
#pragma once

#include <cstdint>
#include <span>

#include "hstu/device/transfer_blocks.h"
#include "hstu/rows/row_shape.h"
#include "hstu/tensor/context.h"

namespace hstu {

// Rows between lines and host memory travel as fast as the link carries them, or beside what the device
// computes for others, which has its multiprocessors.
enum class Pace { fast, beside };

class RowLines {
 public:
  virtual ~RowLines() = default;

  virtual const Context& context() const = 0;
  virtual std::int64_t bytes() const = 0;
  // Makes room for lines 0 .. lines - 1 at least. The others stay where they are.
  virtual void grow(std::int64_t lines) = 0;

  virtual void set_initial_bound(float bound) = 0;  // RowsById::set_initial_bound()

  // In all that follows, `lines` (n) names each line once. These put their work on the stream; `rows` (n, D +
  // state_width) is transfer_memory() that must not change or end before the stream has passed.
  virtual void begin(std::span<const std::int64_t> lines, std::span<const std::int64_t> ids) = 0;  // new rows
  virtual void write(std::span<const std::int64_t> lines, const float* rows) = 0;
  virtual void read(std::span<const std::int64_t> lines, float* rows) const = 0;
  // For each line, once: its row goes to `out`, then that at `in` comes; null: none. Rows in host memory have
  // stored_floats() each, are in transfer_memory() and aligned to 16 bytes; the device reads and writes
  // them itself. The list is in transfer_memory() too.
  struct Exchange {
    std::int64_t line;
    float* out;
    const float* in;
  };
  virtual void exchange(std::span<const Exchange> rows, Pace pace) = 0;
};

// The values (n, D) and the state (n, S) of the rows at `lines` (n), which are copied through `blocks`. Null:
// not asked for, or there is no state. read_parts waits for the stream.
void read_parts(const RowLines& rows, const RowShape& shape, std::span<const std::int64_t> lines,
                TransferBlocks& blocks, float* values, float* state);
void write_parts(RowLines& rows, const RowShape& shape, std::span<const std::int64_t> lines,
                 TransferBlocks& blocks, const float* values, const float* state);

}  // namespace hstu
