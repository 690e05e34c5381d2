// The configuration of tables: [tables.NAME] as what a table is made from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hstu/batching/batch_layout.h"
#include "hstu/embedding/table.h"
#include "hstu/options/options.h"

namespace hstu {

// The values of texts with units: rows "5000", "20k", "200M", "1.5G" (thousands); bytes "512MiB", "48GiB",
// "1GB"; seconds "90s", "15m", "12h", "30d", "2w". "" is 0. Throw UsageError for other texts.
std::int64_t parse_rows(const std::string& text);
std::int64_t parse_bytes(const std::string& text);
std::int64_t parse_duration(const std::string& text);

// For rule::parsed_by.
void check_rows(const std::string& text);
void check_bytes(const std::string& text);
void check_duration(const std::string& text);
void check_row_optimizer(const std::string& text);
void check_table_ranks(const std::string& text);
void check_place(const std::string& text);

// Of a section of `options`.
TableTier place_of(const RunOptions& options, const TableSection& section);

// A table for each feature, of rows of D values unless its section has a width, with the limits and the place
// of its section. Throws UsageError for a section of a table that does not exist, naming the nearest, and for
// keys that contradict each other. A place "auto" is the device here. `ranks`: that share the tables; by
// column, caches have parts of rows.
std::vector<TableConfig> table_configs(const RunOptions& options, const std::vector<FeatureSpec>& features,
                                       std::int64_t dim, int ranks = 1);

}  // namespace hstu
