#include "hstu/embedding/row_gradients.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/rows/not_finite_row.h"
#include "hstu/rows/unique.h"

namespace hstu {

void RowGradients::add(RowSelection selection, std::vector<Tensor> gradients) {
  require(gradients.size() == tables_.size() && (selection.sent || selection.tables.size() == tables_.size()),
          "expected gradients of {} tables, found {}", tables_.size(), gradients.size());
  if (tables_.gpus() != nullptr) {
    for (Part& part : selection.sent ? send_gradients(tables_, *selection.sent, gradients)
                                     : gather_gradients(tables_, selection, gradients))
      parts_.push_back(std::move(part));
    sent_.insert(sent_.end(), gradients.begin(), gradients.end());
    return;
  }
  for (std::size_t t = 0; t < tables_.size(); ++t) {
    Handles& of = selection.tables[t];
    if (tables_[t].config().dtype == DType::bf16) {  // the update rounds by ids
      of.ids = of.ids.copy(tables_.context());
      continue;
    }
    const Tensor host_ids = of.host_ids.defined() ? of.host_ids : of.ids;
    of.ids = host_ids.device().is_host() ? host_ids.copy() : Tensor();
  }
  parts_.push_back({std::move(selection), std::move(gradients)});
}

void RowGradients::add(Catalogue& catalogue) {
  const std::size_t t = catalogue.table();
  std::vector<Tensor> gradients(tables_.size());
  gradients[t] = catalogue.take_gradient();
  std::vector<Part> parts;
  if (tables_.gpus() != nullptr &&
      !tables_[t].owners().is_distributed()) {  // slices of copies go to every rank
    RowSelection selection{.tables = std::vector<Handles>(tables_.size())};
    selection.tables[t].ids = catalogue.device_ids();
    parts = gather_gradients(tables_, selection, gradients);
    sent_.push_back(gradients[t]);
  } else {
    parts.push_back({catalogue.select(RowAccess::train), std::move(gradients)});
  }
  parts_.insert(parts_.begin(), std::make_move_iterator(parts.begin()), std::make_move_iterator(parts.end()));
}

void RowGradients::merge(Communicator& comm) {
  if (comm.size() == 1 && parts_.size() <= 1) return;
  if (comm.size() == 1 || tables_.gpus() != nullptr) {  // what other ranks have sent is among the parts
    for (std::size_t p = 0; p < parts_.size(); ++p)
      tables_.merge(parts_[p].selection, parts_[p].gradients, p == 0);
    return;
  }
  require(tables_.device().is_host(), "tables on GPUs are not shared over the ranks");
  std::vector<RowsWithIds> rows;
  for (std::size_t t = 0; t < tables_.size(); ++t) rows.push_back(rows_of(t));
  rows = send_to_owners(tables_, rows);
  Part sums;
  for (std::size_t t = 0; t < tables_.size(); ++t) add_sums(t, rows[t], sums);
  parts_.clear();
  parts_.push_back(std::move(sums));
}

RowsWithIds RowGradients::rows_of(std::size_t t) const {
  RowsWithIds rows;
  for (const Part& part : parts_) {
    if (!part.gradients[t].defined()) continue;
    const Tensor& names = part.selection.tables[t].ids;
    const auto* const name = names.data<std::int64_t>();
    const float* const values = part.gradients[t].data<float>();
    rows.ids.insert(rows.ids.end(), name, name + names.size());
    rows.values.insert(rows.values.end(), values, values + part.gradients[t].size());
  }
  if (parts_.size() <= 1) return rows;
  // A row travels once, however many parts have it.
  const UniqueIds distinct = unique(rows.ids);
  const std::int64_t dim = tables_[t].config().dim;
  RowsWithIds merged{distinct.ids, std::vector<float>(distinct.ids.size() * static_cast<std::size_t>(dim))};
  sum_by_row(distinct, rows.values.data(), dim, merged.values.data());
  return merged;
}

void RowGradients::add_sums(std::size_t t, const RowsWithIds& rows, Part& sums) const {
  if (rows.ids.empty()) {
    sums.selection.tables.emplace_back();
    sums.gradients.emplace_back();
    return;
  }
  const UniqueIds distinct = unique(rows.ids);
  const auto n = static_cast<std::int64_t>(distinct.ids.size());
  const std::int64_t dim = tables_[t].width();
  Tensor values = Tensor::empty({n, dim}, DType::f32);
  sum_by_row(distinct, rows.values.data(), dim, values.mutable_data<float>());
  sums.selection.tables.push_back(tables_[t].select(distinct.ids, RowAccess::train));
  sums.gradients.push_back(std::move(values));
}

void RowGradients::apply(const RowUpdate& update) {
  for (const Part& part : parts_) tables_.update(part.selection, part.gradients, update);
}

std::vector<Tensor> RowGradients::all() const {
  std::vector<Tensor> gradients;
  for (const Part& part : parts_)
    for (const Tensor& gradient : part.gradients)
      if (gradient.defined()) gradients.push_back(gradient);
  return gradients;
}

std::optional<RowGradients::BadGradient> RowGradients::first_bad() const {
  for (const Part& part : parts_) {
    const std::optional<NotFiniteRow> bad = first_not_finite(part.gradients, tables_.context());
    if (bad) return BadGradient{bad->list, tables_.id_of(part.selection, bad->list, bad->row)};
  }
  return std::nullopt;
}

}  // namespace hstu
