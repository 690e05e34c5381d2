// How much memory a run will need, known before it begins.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "hstu/base/json.h"
#include "hstu/device/device.h"
#include "hstu/device/dry_memory_pool.h"
#include "hstu/embedding/table.h"
#include "hstu/experiment/task_data.h"
#include "hstu/plan/evaluation_plan.h"

namespace hstu {

struct MemoryPlan {
  struct Table {
    std::string name;
    std::int64_t nominal_rows = 0;
    std::int64_t rows = 0;  // that come to life at most
    bool is_bound = false;  // `rows` is only a bound: how many ids occur is not known
    // Of `rows` rows, their optimizer state and what finds them: in the memory of the device that trains, and
    // in host memory beside a GPU's, which does not count for it; and in files, about.
    std::int64_t bytes = 0, host_bytes = 0, disk_bytes = 0;
    TableRanks form = TableRanks::split;  // of several ranks; `rows` and bytes are those of one
    std::int64_t cache_rows = 0;  // > 0: the rows are in host memory behind a cache, whose bytes are no bound
    TableTier place = TableTier::device;
    std::int64_t step_bytes = 0;  // of a cache for the rows of the largest step, about
  };
  std::vector<Table> tables;
  int ranks = 1;  // of which this is the plan of the one that needs the most
  std::int64_t parameters = 0, gradients = 0, optimizer = 0;  // bytes, of the dense parameters
  std::int64_t activations = 0;          // bytes: step_memory() of the largest step, and rows read ahead
  std::int64_t batches = 0;              // bytes of all batches that are ready
  std::int64_t samples = 0, tokens = 0;  // of the largest part
  EvaluationPlan evaluation;             // uses again what activations leave
  std::int64_t kept = 0;                 // bytes that the pool of processors keeps beside them at most
  std::string assumption;                // a sentence for people if the run's dataset is not here
  std::string source_of_part;            // one line for people
  std::string saves_memory;              // of the task

  std::int64_t table_bytes(bool bounds) const;  // with or without the tables of which a bound is known
  std::int64_t host_bytes() const;              // of all tables
  std::int64_t dense_bytes() const { return parameters + gradients + optimizer; }
  // Without bounds: what is needed in any case, if the rows of the other tables occur.
  std::int64_t total(bool bounds = true) const {
    return table_bytes(bounds) + dense_bytes() + batches + evaluation.beside() + passes() + kept;
  }
  // A step, with which the first evaluation's baselines are in memory, or an evaluation in its place.
  std::int64_t passes() const { return std::max(activations + evaluation.baselines, evaluation.passes()); }
};

struct PlannedDevice {
  std::string name;  // for people
  DryDevice device;
  std::int64_t memory_bytes = 0;  // 0: unknown
};

// Without what the driver takes; nothing is known of a device without memory_bytes.
std::int64_t usable_bytes(const PlannedDevice& device);

// The host or a GPU of this machine.
PlannedDevice planned_device(Device device);
// A GPU by a part of its name, "h100": one of gpu_specs.h. Throws UsageError listing them.
PlannedDevice planned_gpu(const std::string& part_of_name);
// With no more memory than the options' device_memory.
PlannedDevice capped(PlannedDevice device, const RunOptions& options);

// Bytes of a table of `rows` rows in the memory of the device that trains, in host memory beside a GPU's, and
// in files. `lines`: of a cache that grows, of a table on the host; 0: none.
struct TableMemory {
  std::int64_t device = 0, host = 0, disk = 0;
};
TableMemory table_memory(const TableConfig& config, std::int64_t state_width, std::int64_t rows,
                         bool gpu_trains, std::int64_t lines = 0);

// Makes a dry step of the largest part of the run's batches (of the first million samples). `data`: of the
// options; its model then computes in their precision. `ranks`: that share the batches and the tables.
MemoryPlan plan_memory(const RunOptions& options, const TaskData& data, const DryDevice& device,
                       int ranks = 1);
// Opens the dataset. Throws UsageError as TaskData does. Without a dataset, assumes one (assumed_dataset.h).
MemoryPlan plan_memory(const RunOptions& options, const DryDevice& device, int ranks = 1);

// Throws UsageError with the figures and what to change if the run cannot fit. Bounds do not count.
void check_fits(const MemoryPlan& plan, const PlannedDevice& device);

std::string to_text(const MemoryPlan& plan, const PlannedDevice& device);
Json to_json(const MemoryPlan& plan, const PlannedDevice& device);

}  // namespace hstu
