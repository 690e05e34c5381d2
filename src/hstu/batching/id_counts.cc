#include "hstu/batching/id_counts.h"

namespace hstu {

void IdCounts::add(std::int64_t id, std::int64_t times) {
  const auto number = static_cast<std::size_t>(distinct_.insert(id));
  if (number == counts_.size()) counts_.push_back(0);
  counts_[number] += times;
}

void IdCounts::add(const IdCounts& other) {
  for (std::size_t i = 0; i < other.counts_.size(); ++i)
    add(other.distinct_.in_order_of_appearance()[i], other.counts_[i]);
}

IdCounts::Sorted IdCounts::sorted() {
  Sorted sorted;
  for (const DistinctIds::Numbered& one : distinct_.sorted()) {
    sorted.ids.push_back(one.id);
    sorted.counts.push_back(counts_[static_cast<std::size_t>(one.number)]);
  }
  return sorted;
}

}  // namespace hstu
