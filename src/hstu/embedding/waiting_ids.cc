#include "hstu/embedding/waiting_ids.h"

#include <algorithm>

#include "hstu/base/random.h"

namespace hstu {

std::size_t WaitingIds::home(std::int64_t id) const {
  return ((mix64(static_cast<std::uint64_t>(id)) >> 32) * ids_.size()) >> 32;
}

std::size_t WaitingIds::probe(std::int64_t id) const {
  std::size_t at = home(id);
  while (counts_[at] != 0 && ids_[at] != id) at = next(at);
  return at;
}

void WaitingIds::grow() {
  const std::vector<std::int64_t> ids = std::move(ids_);
  const std::vector<std::uint32_t> counts = std::move(counts_);
  ids_.assign(ids.empty() ? 64 : ids.size() + ids.size() / 4, 0);
  counts_.assign(ids_.size(), 0);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (counts[i] == 0) continue;
    const std::size_t at = probe(ids[i]);
    ids_[at] = ids[i];
    counts_[at] = counts[i];
  }
}

void WaitingIds::erase(std::size_t hole) {
  const auto distance = [&](std::size_t from, std::size_t to) {
    return to >= from ? to - from : to + ids_.size() - from;
  };
  for (std::size_t at = next(hole); counts_[at] != 0; at = next(at)) {
    if (distance(home(ids_[at]), at) < distance(hole, at)) continue;
    ids_[hole] = ids_[at];
    counts_[hole] = counts_[at];
    hole = at;
  }
  counts_[hole] = 0;
  --size_;
}

std::int64_t WaitingIds::add(std::int64_t id, std::int64_t count, std::int64_t enough) {
  if (size_ > 0) {
    if (const std::size_t at = probe(id); counts_[at] != 0) {
      const std::int64_t all = counts_[at] + count;
      if (all >= enough)
        erase(at);
      else
        counts_[at] = static_cast<std::uint32_t>(all);
      return all;
    }
  }
  if (count >= enough) return count;
  if (5 * (static_cast<std::size_t>(size_) + 1) > 4 * ids_.size()) grow();
  const std::size_t at = probe(id);
  ids_[at] = id;
  counts_[at] = static_cast<std::uint32_t>(count);
  ++size_;
  return count;
}

std::int64_t WaitingIds::count(std::int64_t id) const {
  return size_ == 0 ? 0 : std::int64_t{counts_[probe(id)]};
}

WaitingIds::List WaitingIds::by_id() const {
  std::vector<std::size_t> places;
  places.reserve(static_cast<std::size_t>(size_));
  for (std::size_t i = 0; i < ids_.size(); ++i)
    if (counts_[i] != 0) places.push_back(i);
  std::sort(places.begin(), places.end(), [&](std::size_t a, std::size_t b) { return ids_[a] < ids_[b]; });
  List list;
  for (const std::size_t i : places) {
    list.ids.push_back(ids_[i]);
    list.counts.push_back(counts_[i]);
  }
  return list;
}

}  // namespace hstu
