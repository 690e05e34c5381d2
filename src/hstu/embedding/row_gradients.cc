#include "hstu/embedding/row_gradients.h"

#include <utility>

#include "hstu/base/error.h"
#include "hstu/base/finite.h"
#include "hstu/embedding/unique.h"

namespace hstu {
void RowGradients::add(RowSelection selection, std::vector<Tensor> gradients) {
  require(gradients.size() == tables_.size() && selection.tables.size() == tables_.size(),
          "expected gradients of {} tables, found {}", tables_.size(), gradients.size());
  for (std::size_t t = 0; t < tables_.size(); ++t) {
    if (!gradients[t].defined()) continue;
    auto& [ids, slots] = selection.tables[t];
    tables_[t].push_back({{ids.begin(), ids.end()}, std::move(slots), std::move(gradients[t])});
  }
}

void RowGradients::merge(Communicator& comm) {
  for (std::vector<Part>& parts : tables_) {
    if (comm.size() == 1 && parts.size() <= 1) continue;
    std::vector<std::int64_t> ids;
    std::vector<float> gradients;
    for (const Part& part : parts) {
      const float* const rows = part.gradients.data<float>();
      ids.insert(ids.end(), part.ids.begin(), part.ids.end());
      gradients.insert(gradients.end(), rows, rows + part.gradients.size());
    }
    ids = comm.all_gather(std::span<const std::int64_t>(ids));
    gradients = comm.all_gather(std::span<const float>(gradients));
    parts.clear();
    if (ids.empty()) continue;
    const auto dim = static_cast<std::int64_t>(gradients.size() / ids.size());
    UniqueIds distinct = unique(ids);
    Tensor sums = Tensor::empty({static_cast<std::int64_t>(distinct.ids.size()), dim}, DType::f32);
    sum_by_row(distinct, gradients.data(), dim, sums.mutable_data<float>());
    parts.push_back({std::move(distinct.ids), {}, std::move(sums)});
  }
}

void RowGradients::apply(TableSet& tables, double learning_rate) const {
  RowSelection selection;
  std::vector<Tensor> gradients;
  for (std::size_t t = 0; t < tables_.size(); ++t) {
    require(tables_[t].size() <= 1, "expected merged gradients, found {} parts", tables_[t].size());
    if (tables_[t].empty()) {
      selection.tables.emplace_back();
      gradients.emplace_back();
      continue;
    }
    const Part& part = tables_[t].front();
    const bool looked_up = part.slots.size() == part.ids.size();
    selection.tables.push_back(
        {part.ids, looked_up ? part.slots : tables[t].slots(part.ids, RowAccess::train)});
    gradients.push_back(part.gradients);
  }
  tables.update(selection, gradients, learning_rate);
}

std::optional<RowGradients::BadGradient> RowGradients::first_bad() const {
  for (std::size_t t = 0; t < tables_.size(); ++t) {
    for (const Part& part : tables_[t]) {
      const std::int64_t place = first_not_finite(part.gradients.data<float>(), part.gradients.size());
      if (place < part.gradients.size())
        return BadGradient{t, part.ids[static_cast<std::size_t>(place / part.gradients.cols())]};
    }
  }
  return std::nullopt;
}

}  // namespace hstu
