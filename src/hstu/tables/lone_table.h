// An embedding table without a model: looked up, updated and saved alone, in host memory.
#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <string>

#include "hstu/base/files.h"
#include "hstu/embedding/table_set.h"
#include "hstu/rows/row_optimizer.h"

namespace hstu {

// Functions may be called from several threads at once, and wait for each other.
class LoneTable {
 public:
  // Throws UsageError for settings that a table cannot have.
  LoneTable(const TableConfig& config, const RowOptimizer& optimizer, std::uint64_t seed);

  // out (n, D): the rows of ids (n), which may repeat, or their initial values; zeros outside [0, V).
  void lookup(std::span<const std::int64_t> ids, float* out);
  // One step: gradients (n, D) of ids (n) are summed by id in their order. Throws Error naming the id of a
  // gradient that is not finite, before anything is changed. `time`: event time, for a time to live.
  void update(std::span<const std::int64_t> ids, const float* gradients, double learning_rate,
              std::int64_t time);

  std::int64_t rows();
  const EmbeddingTable& table() const { return tables_[0]; }
  // Every row by ascending id, unless there are more than `room`: ids (n), values (n, D), state (n, S) or
  // null. Returns n.
  std::int64_t read(std::int64_t room, std::int64_t* ids, float* values, float* state);

  // A checkpoint with the section of this table. save() throws UsageError if the folder exists.
  void save(const Path& folder);
  // Throws UsageError unless the table is empty, and Error if the checkpoint does not fit.
  void load(const Path& folder);

 private:
  std::mutex mutex_;
  TableSet tables_;
  std::int64_t step_ = 0;  // updates so far
};

}  // namespace hstu
