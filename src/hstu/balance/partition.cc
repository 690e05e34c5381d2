#include "hstu/balance/partition.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "hstu/base/error.h"

namespace hstu {
namespace {

using Item = std::pair<std::int32_t, std::int64_t>;  // index, work

// The samples of one future rank. Ordered by work, then by number, then by the samples themselves.
struct ItemSet {
  std::int64_t sum = 0;
  std::vector<Item> items;

  friend bool operator<(const ItemSet& a, const ItemSet& b) {
    if (a.sum != b.sum) return a.sum < b.sum;
    if (a.items.size() != b.items.size()) return a.items.size() < b.items.size();
    return a.items < b.items;
  }
};

// One set for each rank, in descending order.
struct State {
  std::vector<ItemSet> sets;
  std::int64_t spread() const { return sets.front().sum - sets.back().sum; }
  void sort() {
    std::sort(sets.begin(), sets.end(), [](const ItemSet& a, const ItemSet& b) { return b < a; });
  }
};

// The state with the largest spread comes first.
struct ComesLater {
  bool operator()(const State& a, const State& b) const {
    return a.spread() != b.spread() ? a.spread() < b.spread() : a.sets.front() < b.sets.front();
  }
};

// The largest sets of one state get the smallest of the other.
State merged(State a, State b) {
  const std::size_t ranks = a.sets.size();
  for (std::size_t i = 0; i < ranks; ++i) {
    ItemSet& from = b.sets[ranks - 1 - i];
    a.sets[i].sum += from.sum;
    a.sets[i].items.insert(a.sets[i].items.end(), from.items.begin(), from.items.end());
  }
  a.sort();
  return a;
}

std::vector<std::int32_t> indices(std::size_t n) {
  std::vector<std::int32_t> all(n);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

std::int64_t work_at(std::span<const std::int64_t> work, std::int32_t i) {
  return work[static_cast<std::size_t>(i)];
}

// States of `ranks` samples of similar work each, the samples by ascending work and index.
std::vector<State> first_states(std::span<const std::int64_t> work, std::size_t ranks) {
  std::vector<std::int32_t> order = indices(work.size());
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int32_t a, std::int32_t b) { return work_at(work, a) < work_at(work, b); });
  std::vector<State> states;
  states.reserve(work.size() / ranks);
  for (std::size_t at = 0; at < order.size(); at += ranks) {
    State& state = states.emplace_back();
    for (std::size_t j = 0; j < ranks; ++j) {
      const std::int64_t w = work_at(work, order[at + j]);
      state.sets.push_back({w, {{order[at + j], w}}});
    }
    state.sort();
  }
  return states;
}

// Takes the first state out; std::priority_queue gives only copies.
State pop(std::vector<State>& heap) {
  std::pop_heap(heap.begin(), heap.end(), ComesLater());
  State first = std::move(heap.back());
  heap.pop_back();
  return first;
}

using Load = std::pair<std::int64_t, std::int32_t>;  // work so far, rank

// Adds to the least load of a heap, and restores the heap: half of what taking it out and putting it in
// costs.
void add_to_first(std::vector<Load>& heap, std::int64_t work) {
  Load moved = heap.front();
  moved.first += work;
  std::size_t at = 0;
  for (std::size_t child = 1; child < heap.size(); child = 2 * at + 1) {
    if (child + 1 < heap.size() && heap[child + 1] < heap[child]) ++child;
    if (moved < heap[child]) break;
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = moved;
}

}  // namespace

Partition balanced_partition(std::span<const std::int64_t> work, int ranks) {
  std::vector<std::pair<std::int64_t, std::int32_t>> order;  // negative work, index: ascending
  order.reserve(work.size());
  for (std::size_t i = 0; i < work.size(); ++i) order.emplace_back(-work[i], static_cast<std::int32_t>(i));
  std::sort(order.begin(), order.end());
  std::vector<Load> least;  // a heap
  for (int r = 0; r < ranks; ++r) least.emplace_back(0, r);
  std::vector<std::int32_t> rank_of(work.size());
  std::vector<std::size_t> counts(static_cast<std::size_t>(ranks));
  for (const auto& [less, sample] : order) {
    const std::int32_t rank = least.front().second;
    rank_of[static_cast<std::size_t>(sample)] = rank;
    ++counts[static_cast<std::size_t>(rank)];
    add_to_first(least, -less);
  }
  Partition parts(static_cast<std::size_t>(ranks));
  for (std::size_t r = 0; r < parts.size(); ++r) parts[r].reserve(counts[r]);
  for (std::size_t i = 0; i < rank_of.size(); ++i)
    parts[static_cast<std::size_t>(rank_of[i])].push_back(static_cast<std::int32_t>(i));
  return parts;
}

Partition equal_size_partition(std::span<const std::int64_t> work, int ranks) {
  const auto n = static_cast<std::size_t>(ranks);
  if (work.size() % n != 0)
    fail_usage(
        "{} samples cannot be divided into {} equal parts: make training.batch_size a multiple of the ranks",
        work.size(), ranks);
  Partition parts(n);
  if (work.empty()) return parts;
  std::vector<State> heap = first_states(work, n);
  std::make_heap(heap.begin(), heap.end(), ComesLater());
  while (heap.size() > 1) {
    State first = pop(heap);
    heap.push_back(merged(std::move(first), pop(heap)));
    std::push_heap(heap.begin(), heap.end(), ComesLater());
  }
  for (std::size_t r = 0; r < n; ++r) {
    for (const Item& item : heap.front().sets[r].items) parts[r].push_back(item.first);
    std::sort(parts[r].begin(), parts[r].end());
  }
  return parts;
}

Partition contiguous_partition(std::size_t samples, int ranks) {
  Partition parts;
  const auto n = static_cast<std::size_t>(ranks);
  for (std::size_t r = 0; r < n; ++r) {
    std::vector<std::int32_t> part(samples * (r + 1) / n - samples * r / n);
    std::iota(part.begin(), part.end(), static_cast<std::int32_t>(samples * r / n));
    parts.push_back(std::move(part));
  }
  return parts;
}

double imbalance(std::span<const std::int64_t> work, const Partition& partition) {
  std::int64_t most = 0;
  double all = 0;
  for (const auto& part : partition) {
    std::int64_t sum = 0;
    for (const std::int32_t i : part) sum += work_at(work, i);
    most = std::max(most, sum);
    all += static_cast<double>(sum);
  }
  return all > 0 ? static_cast<double>(most) * static_cast<double>(partition.size()) / all : 1.0;
}

}  // namespace hstu
