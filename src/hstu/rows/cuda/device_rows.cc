// DeviceRows: the placement of rows that a GPU finds, in its memory. Handles are slots.
#include <algorithm>
#include <memory>
#include <vector>

#include "hstu/base/error.h"
#include "hstu/device/stream.h"
#include "hstu/rows/cuda/device_row_store.h"
#include "hstu/rows/cuda/device_table_lines.h"

namespace hstu::cuda {
namespace {

class DeviceRows final : public Placement {
 public:
  DeviceRows(std::span<const PlacedTable> tables, const Context& context)
      : context_(context), lines_(tables, context) {
    for (std::size_t t = 0; t < tables.size(); ++t)
      stores_.push_back(std::make_unique<DeviceRowStore>(tables[t].shape, lines_.of(t)));
  }

  bool needs_host_ids() const override { return false; }
  std::vector<Handles> select(std::span<const TableIds> ids, RowAccess access) override {
    std::vector<Handles> selected;
    for (const TableIds& list : ids)
      selected.push_back({.table = list.table,
                          .ids = list.ids,
                          .handles = Tensor::empty({list.ids.size()}, DType::i64, context_)});
    if (access == RowAccess::train)
      create(ids, selected);
    else if (!selected.empty())
      find(selected);
    return selected;
  }
  void gather(std::span<const Handles> selected, std::span<Tensor> rows) const override {
    std::vector<TableLines::List> lists;
    for (std::size_t i = 0; i < selected.size(); ++i)
      lists.push_back({selected[i].table, selected[i].ids, selected[i].handles, rows[i]});
    lines_.gather(lists);
  }
  void merge(std::span<const Handles> selected, std::span<Tensor> gradients, bool is_first_part) override {
    lines_.merge(lists_of(selected, gradients), is_first_part);
  }
  void update(std::span<const Handles> selected, std::span<const Tensor> gradients,
              const RowUpdate& update) override {
    lines_.update(lists_of(selected, gradients), update);
  }
  std::int64_t id_of(const Handles& rows, std::int64_t place) const override {
    std::int64_t slot = 0;
    copy_bytes(&slot, rows.handles.row_range(place, place + 1).raw(), sizeof slot, context_.stream);
    context_.stream.synchronize();
    for (const RowPlace& row : stores_[rows.table]->places_by_id())
      if (row.slot == slot) return row.id;
    return -1;
  }

  RowsById& by_id(std::size_t table) override { return *stores_[table]; }
  TableFigures figures(std::size_t table) const override { return {stores_[table]->bytes(), {}}; }

 private:
  RowList list_of(const Handles& of, std::int64_t begin, std::int64_t end, std::uint32_t number = 0) const {
    return row_list({of.table, of.ids.row_range(begin, end), of.handles.row_range(begin, end), {}},
                    stores_[of.table]->table(), number);
  }

  void find(const std::vector<Handles>& selected) const {
    std::vector<RowList> lists;
    lists.reserve(selected.size());
    for (const Handles& of : selected) lists.push_back(list_of(of, 0, of.ids.size()));
    find_rows(lists, context_.stream.cuda());
  }

  // Groups one after another: an id may be in several.
  void create(std::span<const TableIds> ids, const std::vector<Handles>& selected) {
    if (std::none_of(ids.begin(), ids.end(), [](const TableIds& list) { return list.ids.size() > 0; }))
      return;
    // Room for all groups at once: the host waits for a creation where the room may not do.
    for (const TableIds& list : ids) stores_[list.table]->reserve(list.ids.size());
    const std::size_t groups = std::max<std::size_t>(1, ids.front().groups.size());
    std::vector<std::int64_t> done(ids.size(), 0);
    for (std::size_t g = 0; g < groups; ++g) {
      std::vector<RowList> lists;
      for (std::size_t i = 0; i < ids.size(); ++i) {
        const std::int64_t begin = done[i];
        done[i] += ids[i].groups.empty() ? ids[i].ids.size() : ids[i].groups[g];
        lists.push_back(list_of(selected[i], begin, done[i], lines_.of(ids[i].table).next_number()));
      }
      create_rows(lists, context_.stream.cuda());
    }
    Event created(context_.device());
    created.record_later(context_.stream);
    for (const TableIds& list : ids) stores_[list.table]->created(lines_.of(list.table).number(), created);
  }

  Context context_;
  DeviceTableLines lines_;
  std::vector<std::unique_ptr<DeviceRowStore>> stores_;
};

}  // namespace

std::unique_ptr<Placement> device_rows(std::span<const PlacedTable> tables, const Context& context) {
  return std::make_unique<DeviceRows>(tables, context);
}

}  // namespace hstu::cuda
