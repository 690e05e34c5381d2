#include "hstu/rows/host_merge.h"

#include <utility>

#include "hstu/rows/row_storage.h"

namespace hstu {

void HostMerge::begin() {
  for (First& of_table : first_) of_table = {};
}

void HostMerge::add(std::size_t table, Tensor slots, Tensor gradients) {
  const std::int64_t dim = gradients.cols();
  auto* const slot = slots.mutable_data<std::int64_t>();
  auto* const values = gradients.mutable_data<float>();
  auto& [rows, gradients_of] = first_[table];
  std::vector<std::pair<float*, const float*>> sums;
  for (std::int64_t i = 0; i < slots.size(); ++i) {
    if (slot[i] < 0) continue;
    const auto place = static_cast<std::size_t>(rows.find_or_insert(slot[i]));
    if (place == gradients_of.size()) {
      gradients_of.push_back(values + i * dim);
    } else {
      sums.emplace_back(gradients_of[place], values + i * dim);
      slot[i] = kMergedRow;
    }
  }
  for_rows(sums.size(), dim, [&](std::size_t i) {
    const auto& [to, from] = sums[i];
    for (std::int64_t c = 0; c < dim; ++c) to[c] += from[c];
  });
}

}  // namespace hstu
