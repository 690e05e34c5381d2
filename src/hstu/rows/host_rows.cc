// HostRows: the placement of rows in host memory.
#include <memory>
#include <vector>

#include "hstu/rows/host_merge.h"
#include "hstu/rows/host_row_store.h"
#include "hstu/rows/placement.h"

namespace hstu {
namespace {

class HostRows final : public Placement {
 public:
  explicit HostRows(std::span<const PlacedTable> tables)
      : tables_(tables.begin(), tables.end()), merge_(tables.size()) {
    for (const PlacedTable& table : tables)
      stores_.push_back(std::make_unique<HostRowStore>(table.shape, table.directory));
  }

  bool needs_host_ids() const override { return false; }
  std::vector<Handles> select(std::span<const TableIds> ids, RowAccess access) override {
    std::vector<Handles> selected;
    for (const TableIds& list : ids) {
      Tensor slots = Tensor::empty({list.ids.size()}, DType::i64);
      HostRowStore& store = *stores_[list.table];
      if (access == RowAccess::train && tables_[list.table].lookups_create)
        store.create_slots(numbers(list.ids), slots.mutable_data<std::int64_t>());
      else
        store.find_slots(numbers(list.ids), slots.mutable_data<std::int64_t>());
      selected.push_back({.table = list.table,
                          .ids = list.ids,
                          .handles = slots,
                          .host_ids = list.ids,
                          .host_slots = slots});
    }
    return selected;
  }
  void gather(std::span<const Handles> selected, std::span<Tensor> rows) const override {
    for (std::size_t i = 0; i < selected.size(); ++i) {
      const Handles& of = selected[i];
      stores_[of.table]->gather(numbers(of.ids), numbers(of.handles), rows[i].mutable_data<float>());
    }
  }
  void merge(std::span<const Handles> selected, std::span<Tensor> gradients, bool is_first_part) override {
    if (is_first_part) merge_.begin();
    for (std::size_t i = 0; i < selected.size(); ++i)
      if (gradients[i].defined()) merge_.add(selected[i].table, selected[i].handles, gradients[i]);
  }
  void update(std::span<const Handles> selected, std::span<const Tensor> gradients,
              const RowUpdate& update) override {
    for (std::size_t i = 0; i < selected.size(); ++i) {
      const PlacedTable& table = tables_[selected[i].table];
      try {
        stores_[selected[i].table]->update(numbers(selected[i].handles), gradients[i].data<float>(),
                                           table.optimizer, update);
      } catch (const InternalError& error) {
        throw InternalError(fmt::format("table \"{}\": {}", table.name, error.what()));
      }
    }
  }

  RowsById& by_id(std::size_t table) override { return *stores_[table]; }
  TableFigures figures(std::size_t table) const override { return {stores_[table]->bytes(), {}}; }

 private:
  std::vector<PlacedTable> tables_;
  std::vector<std::unique_ptr<HostRowStore>> stores_;
  HostMerge merge_;
};

}  // namespace

std::unique_ptr<Placement> host_rows(std::span<const PlacedTable> tables) {
  return std::make_unique<HostRows>(tables);
}

}  // namespace hstu
