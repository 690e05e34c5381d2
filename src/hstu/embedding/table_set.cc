#include "hstu/embedding/table_set.h"

#include <algorithm>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/base/finite.h"
#include "hstu/embedding/device_rows.h"

namespace hstu {
namespace {

std::span<const std::int64_t> numbers(const Tensor& tensor) {
  return {tensor.data<std::int64_t>(), static_cast<std::size_t>(tensor.size())};
}

}  // namespace

TableSet::TableSet(const std::vector<TableConfig>& configs, RowOptimizer optimizer, std::uint64_t seed,
                   Context where)
    : where_(std::move(where)) {
  for (const TableConfig& config : configs) {
    for (const auto& table : tables_)
      if (table->config().name == config.name)
        fail_usage("two embedding tables are called \"{}\"", config.name);
    tables_.push_back(std::make_unique<EmbeddingTable>(config, optimizer, seed, where_));
  }
}

void TableSet::share_over(Communicator& comm, DeviceTransport* gpus, bool split, WireTypes wire) {
  require(comm.size() > 1 && rows_alive() == 0, "expected several ranks and no rows");
  require(device().is_host() == (gpus == nullptr),
          "expected a transport between GPUs for rows on GPUs alone");
  comm_ = &comm;
  gpus_ = gpus;
  wire_ = wire;
  beyond_wire_ = Tensor::zeros({1}, DType::i64, where_);
  if (!split) return;
  owners_ = {comm.rank(), comm.size()};
  for (const auto& table : tables_) table->set_owners(owners_);
}

void TableSet::find_slots(std::span<const Tensor> ids, RowAccess access, std::span<Tensor> slots,
                          std::size_t groups) {
  require(ids.size() == groups * size() && slots.size() == ids.size(), "expected {} lists of ids, found {}",
          groups * size(), ids.size());
  std::vector<DeviceRows> lists;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    EmbeddingTable& table = *tables_[i % size()];
    if (device().is_host())
      table.find_slots(numbers(ids[i]), access, slots[i].mutable_data<std::int64_t>());
    else
      lists.push_back({.store = &table.store(), .ids = ids[i], .slots = slots[i], .values = {}});
  }
  if (lists.empty()) return;
  access == RowAccess::train ? cuda::create_slots(lists, groups) : cuda::find_slots(lists);
}

RowSelection TableSet::select(std::span<const Tensor> ids, RowAccess access) {
  std::vector<Tensor> slots;
  for (const Tensor& of_table : ids) slots.push_back(Tensor::empty({of_table.size()}, DType::i64, where_));
  find_slots(ids, access, slots);
  RowSelection selection;
  for (std::size_t t = 0; t < size(); ++t) selection.tables.push_back({ids[t], std::move(slots[t])});
  return selection;
}

std::vector<Tensor> TableSet::gather(const RowSelection& selection) const {
  std::vector<Tensor> rows;
  std::vector<DeviceRows> lists;
  for (std::size_t t = 0; t < size(); ++t) {
    const auto& [ids, slots] = selection.tables[t];
    Tensor out = Tensor::empty({ids.size(), tables_[t]->config().dim}, DType::f32, where_);
    if (device().is_host())
      tables_[t]->gather(numbers(ids), numbers(slots), out.mutable_data<float>());
    else
      lists.push_back({.store = &tables_[t]->store(), .ids = ids, .slots = slots, .values = out});
    rows.push_back(std::move(out));
  }
  if (!lists.empty()) cuda::gather(lists);
  return rows;
}

void TableSet::update(const RowSelection& selection, std::span<const Tensor> gradients,
                      double learning_rate) {
  require(gradients.size() == size(), "expected gradients for {} tables, found {}", size(), gradients.size());
  std::vector<DeviceRows> lists;
  for (std::size_t t = 0; t < size(); ++t) {
    if (!gradients[t].defined()) continue;
    const auto& [ids, slots] = selection.tables[t];
    require(gradients[t].rows() == slots.size(), "table \"{}\": expected gradients of {} rows, found {}",
            tables_[t]->config().name, slots.size(), gradients[t].rows());
    if (device().is_host())
      tables_[t]->update(numbers(slots), gradients[t].data<float>(), learning_rate);
    else
      lists.push_back({.store = &tables_[t]->store(), .ids = {}, .slots = slots, .values = gradients[t]});
  }
  if (!lists.empty()) cuda::update(lists, tables_.front()->optimizer(), learning_rate);
}

std::optional<BadRow> TableSet::first_not_finite(std::span<const Tensor> gradients) const {
  std::vector<DeviceRows> lists;
  std::vector<std::size_t> table_of_list;
  for (std::size_t t = 0; t < size(); ++t) {
    const Tensor& rows = gradients[t];
    if (!rows.defined()) continue;
    if (device().is_host()) {
      const std::int64_t place = hstu::first_not_finite(rows.data<float>(), rows.size());
      if (place < rows.size()) return BadRow{t, place / rows.cols()};
    } else {
      lists.push_back({.store = &tables_[t]->store(), .ids = {}, .slots = {}, .values = rows});
      table_of_list.push_back(t);
    }
  }
  if (lists.empty()) return std::nullopt;
  const std::optional<NotFiniteRow> bad = cuda::first_not_finite(lists);
  if (!bad) return std::nullopt;
  return BadRow{table_of_list[bad->list], bad->row};
}

void TableSet::merge(const RowSelection& selection, std::span<const Tensor> gradients, bool is_first_part) {
  require(!device().is_host(), "merge is of tables on a GPU");
  std::vector<DeviceRows> lists;
  for (std::size_t t = 0; t < size(); ++t) {
    lists.push_back({.store = &tables_[t]->store(), .ids = {}, .slots = {}, .values = {}});
    if (!gradients[t].defined()) continue;
    lists.back().slots = selection.tables[t].slots;
    lists.back().values = gradients[t];
  }
  cuda::merge(lists, is_first_part);
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
  return std::any_of(tables_.begin(), tables_.end(), [](const auto& t) { return t->keeper() != nullptr; });
}

std::int64_t TableSet::bytes() const {
  std::int64_t bytes = 0;
  for (const auto& table : tables_) bytes += table->bytes();
  return bytes;
}

}  // namespace hstu
