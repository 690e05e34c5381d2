#include "hstu/embedding/table_set.h"

#include <algorithm>
#include <utility>

#include "hstu/base/choice.h"
#include "hstu/base/error.h"
#include "hstu/base/finite.h"
#include "hstu/base/threads.h"
#include "hstu/embedding/wire_rows.h"
#include "hstu/rows/device_rows.h"

namespace hstu {
namespace {

std::span<const std::int64_t> numbers(const Tensor& tensor) {
  return {tensor.data<std::int64_t>(), static_cast<std::size_t>(tensor.size())};
}

}  // namespace

TableSet::TableSet(const std::vector<TableConfig>& configs, RowOptimizer optimizer, std::uint64_t seed,
                   Context where, std::span<const RowOwners> owners)
    : where_(std::move(where)), uploads_(where_.stream, 4), downloads_(where_.stream) {
  require(owners.empty() || owners.size() == configs.size(), "expected the owners of {} tables, found {}",
          configs.size(), owners.size());
  for (std::size_t t = 0; t < configs.size(); ++t) {
    for (const auto& table : tables_)
      if (table->config().name == configs[t].name)
        fail_usage("two embedding tables are called \"{}\"", configs[t].name);
    tables_.push_back(std::make_unique<EmbeddingTable>(configs[t], optimizer, seed, where_,
                                                       owners.empty() ? RowOwners{} : owners[t]));
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
    if (!device().is_host() && table->placed() != nullptr && !owners.moves())
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

bool TableSet::moves_rows() const {
  return std::any_of(tables_.begin(), tables_.end(), [](const auto& t) { return t->owners().moves(); });
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
    else if (table.placed() == nullptr)
      lists.push_back({.store = &table.store(), .ids = ids[i], .slots = slots[i], .values = {}});
  }
  if (lists.empty()) return;
  access == RowAccess::train ? cuda::create_slots(lists, groups) : cuda::find_slots(lists);
}

// The host looks up the ids; the GPU gets lines, and for evaluation rows that are in host memory.
RowSelection::OfTable TableSet::place(EmbeddingTable& table, const Tensor& ids, const Tensor& host_ids,
                                      const UniqueIds* distinct, RowAccess access) {
  const std::int64_t n = host_ids.size();
  RowSelection::OfTable found{.ids = ids,
                              .slots = Tensor::empty({n}, DType::i64, where_),
                              .host_ids = host_ids,
                              .host_slots = Tensor::empty({n}, DType::i64)};
  auto* const found_slots = found.host_slots.mutable_data<std::int64_t>();
  auto* const lines = uploads_.next<std::int64_t>(n);
  if (distinct == nullptr) {
    table.find_lines(numbers(host_ids), access, found_slots, lines);
  } else {
    std::vector<std::int64_t> distinct_slots(distinct->ids.size()), distinct_lines(distinct->ids.size());
    table.find_lines(distinct->ids, access, distinct_slots.data(), distinct_lines.data());
    for (std::size_t i = 0; i < distinct->index.size(); ++i) {
      const auto at = static_cast<std::size_t>(distinct->index[i]);
      found_slots[i] = distinct_slots[at];
      lines[i] = distinct_lines[at];
    }
  }
  copy_bytes(found.slots.mutable_raw(), lines, found.slots.bytes(), where_.stream);
  uploads_.in_use();
  const PlacedRowStore& store = *table.placed();
  if (access == RowAccess::train || !store.has_cache()) return found;
  const std::span<const std::int64_t> slots = numbers(found.host_slots);
  std::vector<std::int64_t> below;
  std::vector<std::int32_t> places;
  for (std::int64_t i = 0; i < n; ++i) {
    if (lines[i] != PlacedRowStore::kElsewhere) continue;
    below.push_back(slots[static_cast<std::size_t>(i)]);
    places.push_back(static_cast<std::int32_t>(i));
  }
  const auto m = static_cast<std::int64_t>(below.size());
  found.below = Tensor::empty({m, table.width()}, DType::f32, where_);
  found.places_below = Tensor::empty({m}, DType::i32, where_);
  auto* const rows = uploads_.next<float>(found.below.size());
  store.read_below(below, rows);
  copy_bytes(found.below.mutable_raw(), rows, found.below.bytes(), where_.stream);
  uploads_.in_use();
  auto* const block = uploads_.next<std::int32_t>(m);
  std::copy(places.begin(), places.end(), block);
  copy_bytes(found.places_below.mutable_raw(), block, found.places_below.bytes(), where_.stream);
  uploads_.in_use();
  return found;
}

RowSelection TableSet::select_placed(std::span<const Tensor> ids, RowAccess access,
                                     std::span<const Tensor> host_ids, std::span<const UniqueIds> distinct) {
  RowSelection selection{.tables = std::vector<RowSelection::OfTable>(size()), .sent = {}};
  if (device().is_host()) return selection;
  for (std::size_t t = 0; t < size(); ++t) {
    EmbeddingTable& table = *tables_[t];
    if (table.placed() == nullptr) continue;
    require(t < host_ids.size(), "expected the ids of table \"{}\" in host memory", table.config().name);
    // Rows of one table travel while the host looks up the next.
    selection.tables[t] =
        place(table, ids[t], host_ids[t], distinct.empty() ? nullptr : &distinct[t], access);
  }
  return selection;
}

RowSelection TableSet::select(std::span<const Tensor> ids, RowAccess access,
                              std::span<const Tensor> host_ids) {
  RowSelection selection = select_placed(ids, access, host_ids);
  std::vector<DeviceRows> lists;
  for (std::size_t t = 0; t < size(); ++t) {
    EmbeddingTable& table = *tables_[t];
    RowSelection::OfTable& of = selection.tables[t];
    if (of.ids.defined()) continue;
    of = {.ids = ids[t], .slots = Tensor::empty({ids[t].size()}, DType::i64, where_)};
    if (device().is_host()) {
      table.find_slots(numbers(ids[t]), access, of.slots.mutable_data<std::int64_t>());
      of.host_slots = of.slots;
    } else {
      lists.push_back({.store = &table.store(), .ids = ids[t], .slots = of.slots, .values = {}});
    }
  }
  if (!lists.empty()) access == RowAccess::train ? cuda::create_slots(lists) : cuda::find_slots(lists);
  return selection;
}

std::vector<Tensor> TableSet::gather(const RowSelection& selection) const {
  std::vector<Tensor> rows;
  for (std::size_t t = 0; t < size(); ++t)
    rows.push_back(Tensor::empty({selection.tables[t].ids.size(), tables_[t]->width()}, DType::f32, where_));
  gather(selection, rows);
  return rows;
}

void TableSet::gather(const RowSelection& selection, std::span<Tensor> rows) const {
  std::vector<DeviceRows> lists;
  std::vector<WireRows> below;
  for (std::size_t t = 0; t < size(); ++t) {
    const RowSelection::OfTable& of = selection.tables[t];
    Tensor& out = rows[t];
    if (device().is_host())
      tables_[t]->gather(numbers(of.ids), numbers(of.slots), out.mutable_data<float>());
    else
      lists.push_back({.store = &tables_[t]->store(), .ids = of.ids, .slots = of.slots, .values = out});
    if (of.below.defined()) below.push_back({out, of.places_below, of.below});
  }
  if (!lists.empty()) cuda::gather(lists);
  if (!below.empty()) cuda::from_wire(below, stream());
}

void TableSet::begin_updates(std::int64_t step) {
  for (const auto& table : tables_) table->store().begin_updates(step);
}

void TableSet::update(const RowSelection& selection, std::span<const Tensor> gradients, double learning_rate,
                      const float* factor) {
  require(gradients.size() == size(), "expected gradients for {} tables, found {}", size(), gradients.size());
  std::vector<DeviceRows> lists;
  for (std::size_t t = 0; t < size(); ++t) {
    if (!gradients[t].defined()) continue;
    const Tensor& slots = selection.tables[t].slots;
    require(gradients[t].rows() == slots.size(), "table \"{}\": expected gradients of {} rows, found {}",
            tables_[t]->config().name, slots.size(), gradients[t].rows());
    if (device().is_host())
      tables_[t]->update(numbers(slots), gradients[t].data<float>(), learning_rate);
    else
      lists.push_back({.store = &tables_[t]->store(),
                       .ids = tables_[t]->config().dtype == DType::bf16 ? selection.tables[t].ids : Tensor(),
                       .slots = slots,
                       .values = gradients[t],
                       .optimizer = tables_[t]->optimizer()});
  }
  if (!lists.empty()) cuda::update(lists, learning_rate, factor);
}

void TableSet::prefetch(std::span<const Tensor> ids) {
  for (std::size_t t = 0; t < size(); ++t)
    if (tables_[t]->placed() != nullptr && ids[t].defined()) tables_[t]->placed()->prefetch(numbers(ids[t]));
}

void TableSet::end_step() {
  for (const auto& table : tables_)
    if (PlacedRowStore* const store = table->placed()) store->end_step();
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

bool TableSet::are_on_gpu() const {
  return !device().is_host() && !any_limits() &&
         std::none_of(tables_.begin(), tables_.end(), [](const auto& t) { return t->placed() != nullptr; });
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
