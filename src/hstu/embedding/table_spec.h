// TableSpec: what a table is, from its configuration, before it has a place for its rows.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "hstu/base/files.h"
#include "hstu/embedding/row_limits.h"
#include "hstu/embedding/row_owners.h"
#include "hstu/embedding/table_tier.h"
#include "hstu/rows/placement.h"
#include "hstu/rows/row_optimizer.h"
#include "hstu/tensor/context.h"

namespace hstu {

struct TableConfig {
  std::string name;       // letters, digits, '_', '-' and '.': it names a file of the checkpoint
  std::int64_t rows = 0;  // V: ids are 0 .. V - 1
  std::int64_t dim = 0;   // D
  RowLimits limits = {};
  InitialValue initial = {};
  std::optional<RowOptimizerKind> optimizer = {};  // empty: that of the other tables
  double rate = 1;                                 // RowOptimizer::rate; 0: frozen
  TableRanks ranks = TableRanks::automatic;        // how several ranks share it
  DType dtype = DType::f32;                        // f32 or bf16, of the values
  // Of tables on a GPU: `host`, and `disk` without cache_rows, have a cache for the rows of the largest step
  // there. On the host `device` is `host`.
  TableTier place = TableTier::device;
  // > 0: all rows are in host memory, or on the disk, and a cache in the memory of the tables has room for so
  // many.
  std::int64_t cache_rows = 0;
  // Of the disk: rows in a file of a new folder in `disk_folder`, below a cache in host memory for so many.
  std::int64_t host_rows = 0;
  Path disk_folder = {};
};

struct TableSpec {
  TableConfig config;
  RowOptimizer optimizer;  // its own
  RowOwners owners;
  PlacedTable placed;  // what its rank, or the only one, has of it
};

// Throws UsageError for an invalid name, V or D. `optimizer`: of tables that name none. `device`: of the
// rows.
TableSpec table_spec(const TableConfig& config, RowOptimizer optimizer, std::uint64_t seed, Device device,
                     const RowOwners& owners);

// Where the rows of a table are, in the order in which the placements of a model select rows: what the host
// finds travels while a GPU finds the rest.
enum class PlacementKind { tiered, device, host };
inline constexpr PlacementKind kPlacements[] = {PlacementKind::tiered, PlacementKind::device,
                                                PlacementKind::host};
PlacementKind placement_of(const TableConfig& config, Device device);
std::shared_ptr<Placement> make_placement(PlacementKind kind, std::span<const PlacedTable> tables,
                                          const Context& where);

}  // namespace hstu
