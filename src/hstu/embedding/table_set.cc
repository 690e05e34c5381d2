#include "hstu/embedding/table_set.h"

#include "hstu/base/error.h"
#include "hstu/base/text.h"

namespace hstu {

TableSet::TableSet(const std::vector<TableConfig>& configs, RowOptimizer optimizer, std::uint64_t seed) {
  for (const TableConfig& config : configs) {
    for (const auto& table : tables_)
      if (table->config().name == config.name)
        fail_usage("two embedding tables are called \"{}\"", config.name);
    tables_.push_back(std::make_unique<EmbeddingTable>(config, optimizer, seed));
  }
}

std::size_t TableSet::index_of(std::string_view name) const {
  std::vector<std::string> known;
  for (std::size_t i = 0; i < tables_.size(); ++i) {
    if (tables_[i]->config().name == name) return i;
    known.push_back(tables_[i]->config().name);
  }
  fail_usage("unknown embedding table \"{}\"{}", name, suggestion(name, known));
}

std::int64_t TableSet::rows_alive() const {
  std::int64_t rows = 0;
  for (const auto& table : tables_) rows += table->rows_alive();
  return rows;
}

std::int64_t TableSet::bytes() const {
  std::int64_t bytes = 0;
  for (const auto& table : tables_) bytes += table->bytes();
  return bytes;
}

}  // namespace hstu
