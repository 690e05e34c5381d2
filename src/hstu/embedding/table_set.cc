#include "hstu/embedding/table_set.h"

#include <algorithm>
#include <utility>

#include "hstu/base/choice.h"
#include "hstu/base/error.h"

namespace hstu {
TableSet::TableSet(const std::vector<TableConfig>& configs, RowOptimizer optimizer, std::uint64_t seed,
                   Context where, std::span<const RowOwners> owners)
    : where_(std::move(where)), downloads_(where_.stream), tables_(configs.size()) {
  require(owners.empty() || owners.size() == configs.size(), "expected the owners of {} tables, found {}",
          configs.size(), owners.size());
  std::vector<TableSpec> specs;
  for (std::size_t t = 0; t < configs.size(); ++t) {
    for (const TableSpec& spec : specs)
      if (spec.config.name == configs[t].name)
        fail_usage("two embedding tables are called \"{}\"", configs[t].name);
    specs.push_back(
        table_spec(configs[t], optimizer, seed, device(), owners.empty() ? RowOwners{} : owners[t]));
  }
  for (const PlacementKind kind : kPlacements) {
    Group group;
    std::vector<PlacedTable> placed;
    for (std::size_t t = 0; t < specs.size(); ++t) {
      if (placement_of(configs[t], device()) != kind) continue;
      group.tables.push_back(t);
      placed.push_back(specs[t].placed);
    }
    if (placed.empty()) continue;
    group.rows = make_placement(kind, placed, where_);
    for (std::size_t i = 0; i < placed.size(); ++i)
      tables_[group.tables[i]] =
          std::make_unique<EmbeddingTable>(group.rows, i, specs[group.tables[i]], where_);
    groups_.push_back(std::move(group));
  }
}

void TableSet::share_over(Communicator& comm, DeviceTransport* gpus, WireTypes wire) {
  require(device().is_host() == (gpus == nullptr),
          "expected a transport between GPUs for rows on GPUs alone");
  for (const auto& table : tables_) {
    const RowOwners& owners = table->owners();
    require(comm.size() > 1 && owners.ranks == comm.size() && owners.rank == comm.rank() &&
                table->rows_alive() == 0,
            "table \"{}\": expected the part of rank {} of {}, without rows", table->config().name,
            comm.rank(), comm.size());
    if (!device().is_host() && table->needs_host_ids() && !owners.is_distributed())
      fail_usage(
          "tables.{}.ranks = \"{}\": on several GPUs, limits and rows in host memory or on a disk need "
          "\"split\", \"column\" or \"table\"",
          table->config().name, word_of(kTableRanks, owners.form));
  }
  comm_ = &comm;
  gpus_ = gpus;
  wire_ = wire;
  beyond_wire_ = Tensor::zeros({1}, DType::i64, where_);
}

bool TableSet::is_distributed() const {
  return std::any_of(tables_.begin(), tables_.end(),
                     [](const auto& t) { return t->owners().is_distributed(); });
}

RowSelection TableSet::select(std::span<const TableIds> ids, RowAccess access) {
  require(ids.size() == size(), "expected the ids of {} tables, found {}", size(), ids.size());
  RowSelection selection{.tables = std::vector<Handles>(size())};
  for (const Group& group : groups_) {
    std::vector<TableIds> lists;
    for (std::size_t i = 0; i < group.tables.size(); ++i) {
      const TableIds& list = ids[group.tables[i]];
      if (!list.ids.defined()) continue;
      lists.push_back(list);
      lists.back().table = i;
    }
    if (lists.empty()) continue;
    try {
      for (Handles& found : group.rows->select(lists, access))
        selection.tables[group.tables[found.table]] = std::move(found);
    } catch (const CacheTooSmall& error) {
      tables_[group.tables[error.table]]->refuse(error);
    }
  }
  return selection;
}

RowSelection TableSet::select(std::span<const Tensor> ids, RowAccess access,
                              std::span<const Tensor> host_ids) {
  std::vector<TableIds> lists;
  for (std::size_t t = 0; t < ids.size(); ++t)
    lists.push_back({.ids = ids[t], .host_ids = t < host_ids.size() ? host_ids[t] : Tensor()});
  return select(lists, access);
}

std::vector<Tensor> TableSet::gather(const RowSelection& selection) const {
  std::vector<Tensor> rows;
  for (std::size_t t = 0; t < size(); ++t)
    rows.push_back(Tensor::empty({selection.tables[t].ids.size(), tables_[t]->width()}, DType::f32, where_));
  gather(selection, rows);
  return rows;
}

TableSet::Lists TableSet::lists_of(const Group& group, const RowSelection& selection,
                                   std::span<const Tensor> values, bool defined_only) {
  Lists lists;
  for (std::size_t i = 0; i < group.tables.size(); ++i) {
    const std::size_t t = group.tables[i];
    if (defined_only && !values[t].defined()) continue;
    lists.selected.push_back(selection.tables[t]);
    lists.selected.back().table = i;
    lists.values.push_back(values[t]);
  }
  return lists;
}

void TableSet::gather(const RowSelection& selection, std::span<Tensor> rows) const {
  for (const Group& group : groups_) {
    Lists lists = lists_of(group, selection, rows);
    group.rows->gather(lists.selected, lists.values);
  }
}

void TableSet::update(const RowSelection& selection, std::span<const Tensor> gradients,
                      const RowUpdate& update) {
  require(gradients.size() == size(), "expected gradients for {} tables, found {}", size(), gradients.size());
  for (const Group& group : groups_) {
    const Lists lists = lists_of(group, selection, gradients, true);
    for (std::size_t i = 0; i < lists.selected.size(); ++i) {
      const Handles& selected = lists.selected[i];
      require(lists.values[i].rows() == selected.handles.size(),
              "table \"{}\": expected gradients of {} rows, found {}",
              tables_[group.tables[selected.table]]->config().name, selected.handles.size(),
              lists.values[i].rows());
    }
    if (!lists.selected.empty()) group.rows->update(lists.selected, lists.values, update);
  }
}

void TableSet::prefetch(std::span<const Tensor> ids) {
  for (const Group& group : groups_) {
    std::vector<TableIds> lists;
    for (std::size_t i = 0; i < group.tables.size(); ++i)
      if (const Tensor& of_table = ids[group.tables[i]]; of_table.defined())
        lists.push_back({.table = i, .ids = {}, .host_ids = of_table});
    group.rows->prefetch(lists);
  }
}

void TableSet::end_step() {
  for (const Group& group : groups_) group.rows->end_step();
}

void TableSet::merge(const RowSelection& selection, std::span<Tensor> gradients, bool is_first_part) {
  for (const Group& group : groups_) {
    Lists lists = lists_of(group, selection, gradients);
    group.rows->merge(lists.selected, lists.values, is_first_part);
  }
}

std::int64_t TableSet::id_of(const RowSelection& selection, std::size_t t, std::int64_t row) const {
  const Handles& selected = selection.tables[t];
  if (selected.ids.defined())
    return selected.ids.row_range(row, row + 1).to_host(stream()).data<std::int64_t>()[0];
  return tables_[t]->id_of(selected, row);
}

std::int64_t TableSet::values_beyond_wire() const {
  return beyond_wire_.defined() ? beyond_wire_.to_host(stream()).data<std::int64_t>()[0] : 0;
}

std::int64_t TableSet::rows_alive() const {
  std::int64_t rows = 0;
  for (const auto& table : tables_) rows += table->rows_alive();
  return rows;
}

bool TableSet::any_limits() const {
  return std::any_of(tables_.begin(), tables_.end(), [](const auto& t) { return t->has_limits(); });
}

bool TableSet::are_on_gpu() const {
  return !device().is_host() && std::none_of(groups_.begin(), groups_.end(),
                                             [](const Group& g) { return g.rows->needs_host_ids(); });
}

void TableSet::begin_changes() {
  for (const auto& table : tables_) table->begin_changes();
}

std::int64_t TableSet::bytes() const {
  std::int64_t bytes = 0;
  for (const auto& table : tables_) bytes += table->bytes();
  return bytes;
}

}  // namespace hstu
