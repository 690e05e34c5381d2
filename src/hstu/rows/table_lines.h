// TableLines: the lines of all tables of a placement, and the work on them whose rows and gradients are
// tensors on their device: one launch for all tables on a GPU.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "hstu/rows/placement.h"
#include "hstu/rows/row_lines.h"
#include "hstu/rows/wire_rows.h"

namespace hstu {

class TableLines {
 public:
  struct List {
    std::size_t table = 0;
    Tensor ids;     // (n) i64
    Tensor lines;   // (n) i64, each once, or negative: kAbsentRow, kNullRow, kMergedRow
    Tensor values;  // (n, D) f32: rows or gradients
  };
  virtual ~TableLines() = default;

  virtual RowLines& of(std::size_t table) = 0;
  // ids, lines -> values: initial values where a row is absent, and zeros for the null row.
  virtual void gather(std::span<const List> lists) const = 0;
  // Rows that are from elsewhere, to their places.
  virtual void place(std::span<const WireRows> rows) const = 0;
  // Of bf16 tables with ids. One launch for each optimizer and type of values.
  virtual void update(std::span<const List> lists, const RowUpdate& update) = 0;
  // Placement::merge, with an undefined `lines` for none.
  virtual void merge(std::span<const List> lists, bool is_first_part) = 0;
};

std::unique_ptr<TableLines> make_table_lines(std::span<const PlacedTable> tables, const Context& where);

// Of handles that are lines, and gradients, undefined for none: to update or to merge.
inline std::vector<TableLines::List> lists_of(std::span<const Handles> selected,
                                              std::span<const Tensor> gradients) {
  std::vector<TableLines::List> lists;
  for (std::size_t i = 0; i < selected.size(); ++i) {
    lists.push_back({.table = selected[i].table, .ids = {}, .lines = {}, .values = {}});
    if (!gradients[i].defined()) continue;
    lists.back() = {selected[i].table, selected[i].ids, selected[i].handles, gradients[i]};
  }
  return lists;
}

namespace cuda {
// Throws Error in a build without CUDA.
std::unique_ptr<TableLines> make_table_lines(std::span<const PlacedTable> tables, const Context& where);
}  // namespace cuda

}  // namespace hstu
