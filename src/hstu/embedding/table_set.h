// TableSet: the embedding tables of a model, in the order of its features, with three operations over all of
// them: select rows, gather rows, update rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "hstu/embedding/table.h"
#include "hstu/tensor/tensor.h"

namespace hstu {

// The rows that one batch reads. `ids` belong to the caller and must outlive it.
struct RowSelection {
  struct OfTable {
    std::span<const std::int64_t> ids;  // (n) each once
    std::vector<std::int64_t> slots;    // (n)
  };
  std::vector<OfTable> tables;  // one per table
};

class TableSet {
 public:
  // Throws UsageError if two tables have the same name.
  TableSet(const std::vector<TableConfig>& configs, RowOptimizer optimizer, std::uint64_t seed);

  // Looks up ids[t] (n_t, each once) in table t.
  RowSelection select(std::span<const std::span<const std::int64_t>> ids, RowAccess access);
  // The selected rows: (n_t, D) in f32, one tensor per table.
  std::vector<Tensor> gather(const RowSelection& selection) const;
  // Updates the selected rows by gradients (n_t, D) in f32, one tensor per table; an undefined one leaves its
  // table unchanged. The rows must be selected with RowAccess::train.
  void update(const RowSelection& selection, std::span<const Tensor> gradients, double learning_rate);

  std::size_t size() const { return tables_.size(); }
  EmbeddingTable& operator[](std::size_t i) { return *tables_[i]; }
  const EmbeddingTable& operator[](std::size_t i) const { return *tables_[i]; }

  std::int64_t rows_alive() const;
  std::int64_t bytes() const;

 private:
  std::vector<std::unique_ptr<EmbeddingTable>> tables_;
};

}  // namespace hstu
