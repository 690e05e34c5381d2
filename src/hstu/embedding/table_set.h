// TableSet: the embedding tables of a model, in the order of the configuration.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "hstu/embedding/table.h"

namespace hstu {

class TableSet {
 public:
  // Throws UsageError when two tables bear one name.
  TableSet(const std::vector<TableConfig>& configs, RowOptimizer optimizer, std::uint64_t seed);

  std::size_t size() const { return tables_.size(); }
  EmbeddingTable& operator[](std::size_t i) { return *tables_[i]; }
  const EmbeddingTable& operator[](std::size_t i) const { return *tables_[i]; }

  // The number of the table called `name`. Throws UsageError naming the nearest known one.
  std::size_t index_of(std::string_view name) const;

  std::int64_t rows_alive() const;
  std::int64_t bytes() const;

 private:
  std::vector<std::unique_ptr<EmbeddingTable>> tables_;
};

}  // namespace hstu
