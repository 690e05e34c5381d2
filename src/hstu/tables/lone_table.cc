#include "hstu/tables/lone_table.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "hstu/base/error.h"
#include "hstu/base/finite.h"
#include "hstu/checkpoint/checkpoint.h"
#include "hstu/comm/communicator.h"
#include "hstu/embedding/row_visits.h"
#include "hstu/embedding/table_section.h"
#include "hstu/rows/unique.h"

namespace hstu {
namespace {

Tensor tensor_of(std::span<const std::int64_t> ids) {
  Tensor tensor = Tensor::empty({std::ssize(ids)}, DType::i64);
  std::copy(ids.begin(), ids.end(), tensor.mutable_data<std::int64_t>());
  return tensor;
}

// The ids of the table and how often each occurs.
void visit(const UniqueIds& unique, std::int64_t rows, RowVisits& visits) {
  std::vector<std::int64_t> counts(unique.ids.size()), ids, occurrences;
  for (const std::int32_t i : unique.index) ++counts[static_cast<std::size_t>(i)];
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (unique.ids[i] < 0 || unique.ids[i] >= rows) continue;
    ids.push_back(unique.ids[i]);
    occurrences.push_back(counts[i]);
  }
  visits.add(0, ids, occurrences);
}

}  // namespace

LoneTable::LoneTable(const TableConfig& config, const RowOptimizer& optimizer, std::uint64_t seed)
    : tables_({config}, optimizer, seed) {}

void LoneTable::lookup(std::span<const std::int64_t> ids, float* out) {
  const UniqueIds unique = hstu::unique(ids);
  const std::lock_guard lock(mutex_);
  const Tensor list = tensor_of(unique.ids);
  const Tensor rows = tables_.gather(tables_.select(std::span(&list, 1), RowAccess::read)).front();
  const std::int64_t dim = table().config().dim;
  for (const std::int32_t i : unique.index) out = std::copy_n(rows.data<float>() + i * dim, dim, out);
}

void LoneTable::update(std::span<const std::int64_t> ids, const float* gradients, double learning_rate,
                       std::int64_t time) {
  if (!std::isfinite(learning_rate))
    fail_usage("table {}: expected a learning rate that is a number, found {}", table().config().name,
               learning_rate);
  const UniqueIds unique = hstu::unique(ids);
  const auto n = std::ssize(unique.ids);
  const std::int64_t dim = table().config().dim;
  Tensor sums = Tensor::empty({n, dim}, DType::f32);
  sum_by_row(unique, gradients, dim, sums.mutable_data<float>());
  const std::int64_t bad = first_not_finite(sums.data<float>(), n * dim);
  check(bad == n * dim, "table {}: the gradient of id {} is not finite", table().config().name,
        bad == n * dim ? 0 : unique.ids[static_cast<std::size_t>(bad / dim)]);
  const std::lock_guard lock(mutex_);
  const Tensor list = tensor_of(unique.ids);
  tables_.update(tables_.select(std::span(&list, 1), RowAccess::train), std::span(&sums, 1),
                 {.learning_rate = learning_rate, .step = step_});
  if (table().has_limits()) {
    RowVisits visits(tables_);
    visit(unique, table().config().rows, visits);
    visits.end_step(one_rank(), time);
  }
  tables_.end_step();
  ++step_;
}

std::int64_t LoneTable::rows() {
  const std::lock_guard lock(mutex_);
  return tables_.rows_alive();
}

std::int64_t LoneTable::read(std::int64_t room, std::int64_t* ids, float* values, float* state) {
  const std::lock_guard lock(mutex_);
  const auto places = table().places_by_id();
  if (std::ssize(places) > room) return std::ssize(places);
  std::transform(places.begin(), places.end(), ids, [](const auto& place) { return place.id; });
  table().read(places, values, state);
  return std::ssize(places);
}

void LoneTable::save(const Path& folder) {
  const std::lock_guard lock(mutex_);
  StagedFolder staged(folder);
  CheckpointManifest manifest{.step = step_,
                              .state = {{"reason", "a table alone"}, {"dataset", ""}},
                              .tables = nlohmann::json::array(),
                              .files = {}};
  for (const Section& section : table_sections(tables_)) {
    SectionWriter writer(staged.path(), section.name, manifest);
    section.save(writer);
    writer.close();
  }
  write_checkpoint_manifest(staged.path(), manifest);
  staged.commit();
}

void LoneTable::load(const Path& folder) {
  const std::lock_guard lock(mutex_);
  if (step_ > 0 || tables_.rows_alive() > 0)
    fail_usage("table {}: it is not empty: load into a new one", table().config().name);
  const Checkpoint checkpoint(folder);
  checkpoint.load(table_sections(tables_));
  step_ = checkpoint.step();
}

}  // namespace hstu
