#include "hstu/embedding/table_set.h"

#include "hstu/base/error.h"

namespace hstu {

TableSet::TableSet(const std::vector<TableConfig>& configs, RowOptimizer optimizer, std::uint64_t seed) {
  for (const TableConfig& config : configs) {
    for (const auto& table : tables_)
      if (table->config().name == config.name)
        fail_usage("two embedding tables are called \"{}\"", config.name);
    tables_.push_back(std::make_unique<EmbeddingTable>(config, optimizer, seed));
  }
}

RowSelection TableSet::select(std::span<const std::span<const std::int64_t>> ids, RowAccess access) {
  require(ids.size() == size(), "expected ids for {} tables, found {}", size(), ids.size());
  RowSelection selection;
  for (std::size_t t = 0; t < size(); ++t)
    selection.tables.push_back({ids[t], tables_[t]->slots(ids[t], access)});
  return selection;
}

std::vector<Tensor> TableSet::gather(const RowSelection& selection) const {
  std::vector<Tensor> rows;
  for (std::size_t t = 0; t < size(); ++t) {
    const auto& [ids, slots] = selection.tables[t];
    Tensor out = Tensor::empty({static_cast<std::int64_t>(ids.size()), tables_[t]->config().dim}, DType::f32);
    tables_[t]->gather(ids, slots, out.mutable_data<float>());
    rows.push_back(std::move(out));
  }
  return rows;
}

void TableSet::update(const RowSelection& selection, std::span<const Tensor> gradients,
                      double learning_rate) {
  require(gradients.size() == size(), "expected gradients for {} tables, found {}", size(), gradients.size());
  for (std::size_t t = 0; t < size(); ++t) {
    if (!gradients[t].defined()) continue;
    const auto& [ids, slots] = selection.tables[t];
    require(gradients[t].rows() == static_cast<std::int64_t>(ids.size()),
            "table \"{}\": expected gradients of {} rows, found {}", tables_[t]->config().name, ids.size(),
            gradients[t].rows());
    tables_[t]->update(slots, gradients[t].data<float>(), learning_rate);
  }
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
