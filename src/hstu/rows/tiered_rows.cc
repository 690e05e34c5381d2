// TieredRows: the placement of rows that the host finds: in a cache on a device over host memory or a disk,
// or on the device alone. Handles are lines (row_lines.h).
#include <algorithm>
#include <memory>
#include <vector>

#include "hstu/device/transfer_blocks.h"
#include "hstu/rows/host_merge.h"
#include "hstu/rows/placement.h"
#include "hstu/rows/table_lines.h"
#include "hstu/rows/tiered_row_store.h"

namespace hstu {
namespace {

class TieredRows final : public Placement {
 public:
  TieredRows(std::span<const PlacedTable> tables, const Context& where)
      : tables_(tables.begin(), tables.end()),
        where_(where),
        uploads_(where.stream, 4),
        lines_(make_table_lines(tables, where)) {
    for (std::size_t t = 0; t < tables.size(); ++t)
      stores_.push_back(std::make_unique<TieredRowStore>(tables[t], lines_->of(t), where));
  }

  bool needs_host_ids() const override { return true; }
  // Rows of one table travel while the host looks up the next.
  std::vector<Handles> select(std::span<const TableIds> ids, RowAccess access) override {
    std::vector<Handles> selected;
    for (const TableIds& list : ids) selected.push_back(select(list, access));
    return selected;
  }
  void gather(std::span<const Handles> selected, std::span<Tensor> rows) const override {
    std::vector<TableLines::List> lists;
    std::vector<WireRows> below;
    for (std::size_t i = 0; i < selected.size(); ++i) {
      const Handles& of = selected[i];
      lists.push_back({.table = of.table, .ids = of.ids, .lines = of.handles, .values = rows[i]});
      if (of.below.defined()) below.push_back({rows[i], of.places_below, of.below});
    }
    lines_->gather(lists);
    if (!below.empty()) lines_->place(below);
  }
  void merge(std::span<const Handles> selected, std::span<Tensor> gradients, bool is_first_part) override {
    lines_->merge(lists_of(selected, gradients), is_first_part);
  }
  void update(std::span<const Handles> selected, std::span<const Tensor> gradients,
              const RowUpdate& update) override {
    lines_->update(lists_of(selected, gradients), update);
  }
  void prefetch(std::span<const TableIds> ids) override {
    for (const TableIds& list : ids) stores_[list.table]->prefetch(numbers(list.host_ids));
  }
  void end_step() override {
    for (const auto& store : stores_) store->end_step();
  }

  RowsById& by_id(std::size_t table) override { return *stores_[table]; }
  TableFigures figures(std::size_t table) const override {
    const TieredRowStore& store = *stores_[table];
    TableFigures figures{store.bytes(), {}};
    if (store.has_cache()) figures.cache = store.counts();
    return figures;
  }

 private:
  void find(std::size_t table, std::span<const std::int64_t> ids, RowAccess access, std::int64_t* slots,
            std::int64_t* lines) {
    if (access == RowAccess::read) return stores_[table]->find(ids, slots, lines);
    try {
      stores_[table]->use(ids, tables_[table].lookups_create, slots, lines);
    } catch (CacheTooSmall& error) {
      error.table = table;
      throw;
    }
  }

  Handles select(const TableIds& list, RowAccess access) {
    const Tensor& distinct = list.host_ids.defined() ? list.host_ids : list.ids;
    require(distinct.device().is_host(), "table \"{}\": expected its ids in host memory",
            tables_[list.table].name);
    const std::int64_t n = list.ids.size();
    Handles found{.table = list.table,
                  .ids = list.ids,
                  .handles = Tensor::empty({n}, DType::i64, where_),
                  .host_ids = list.index.empty() ? distinct : Tensor(),
                  .host_slots = Tensor::empty({n}, DType::i64)};
    auto* const slots = found.host_slots.mutable_data<std::int64_t>();
    auto* const lines = uploads_.next<std::int64_t>(n);
    if (list.index.empty()) {
      find(list.table, numbers(distinct), access, slots, lines);
    } else {
      std::vector<std::int64_t> their_slots(static_cast<std::size_t>(distinct.size())),
          their_lines(their_slots);
      find(list.table, numbers(distinct), access, their_slots.data(), their_lines.data());
      for (std::size_t i = 0; i < list.index.size(); ++i) {
        const auto at = static_cast<std::size_t>(list.index[i]);
        slots[i] = their_slots[at];
        lines[i] = their_lines[at];
      }
    }
    copy_bytes(found.handles.mutable_raw(), lines, found.handles.bytes(), where_.stream);
    uploads_.in_use();
    if (access == RowAccess::read && stores_[list.table]->has_cache())
      bring_below({lines, numbers(found.host_slots).size()}, found);
    return found;
  }

  // In evaluation rows stay below; their values travel.
  void bring_below(std::span<const std::int64_t> lines, Handles& found) {
    const std::span<const std::int64_t> slots = numbers(found.host_slots);
    std::vector<std::int64_t> below;
    std::vector<std::int32_t> places;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (lines[i] != TieredRowStore::kElsewhere) continue;
      below.push_back(slots[i]);
      places.push_back(static_cast<std::int32_t>(i));
    }
    const auto m = static_cast<std::int64_t>(below.size());
    found.below = Tensor::empty({m, tables_[found.table].shape.dim}, DType::f32, where_);
    found.places_below = Tensor::empty({m}, DType::i32, where_);
    auto* const rows = uploads_.next<float>(found.below.size());
    stores_[found.table]->read_below(below, rows);
    copy_bytes(found.below.mutable_raw(), rows, found.below.bytes(), where_.stream);
    uploads_.in_use();
    auto* const block = uploads_.next<std::int32_t>(m);
    std::copy(places.begin(), places.end(), block);
    copy_bytes(found.places_below.mutable_raw(), block, found.places_below.bytes(), where_.stream);
    uploads_.in_use();
  }

  std::vector<PlacedTable> tables_;
  Context where_;
  TransferBlocks uploads_;
  std::unique_ptr<TableLines> lines_;
  std::vector<std::unique_ptr<TieredRowStore>> stores_;
};

}  // namespace

std::unique_ptr<Placement> tiered_rows(std::span<const PlacedTable> tables, const Context& where) {
  return std::make_unique<TieredRows>(tables, where);
}

}  // namespace hstu
