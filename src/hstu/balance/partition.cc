#include "hstu/balance/partition.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <utility>

#include "hstu/base/error.h"

namespace hstu {
namespace {

// The samples by ascending or descending work; of equal work, the lower index first. A radix sort by digits
// of 11 bits, in a third of the time that comparisons take.
enum class Order { ascending, descending };
std::vector<std::int32_t> sorted_by(std::span<const std::int64_t> work, Order order) {
  constexpr int kBits = 11;
  constexpr std::size_t kDigits = std::size_t{1} << kBits;
  struct Keyed {
    std::uint64_t key;
    std::int32_t sample;
  };
  std::vector<Keyed> from(work.size()), to(work.size());
  if (!work.empty()) {
    const auto [least, most] = std::minmax_element(work.begin(), work.end());
    const auto low = static_cast<std::uint64_t>(*least), high = static_cast<std::uint64_t>(*most);
    for (std::size_t i = 0; i < work.size(); ++i) {
      const auto w = static_cast<std::uint64_t>(work[i]);
      from[i] = {order == Order::ascending ? w - low : high - w, static_cast<std::int32_t>(i)};
    }
    const auto bits = static_cast<int>(std::bit_width(high - low));
    for (int shift = 0; shift < bits; shift += kBits) {
      const auto digit = [&](const Keyed& k) { return static_cast<std::size_t>(k.key >> shift) % kDigits; };
      std::array<std::size_t, kDigits + 1> begin{};
      for (const Keyed& k : from) ++begin[digit(k) + 1];
      std::partial_sum(begin.begin(), begin.end(), begin.begin());
      for (const Keyed& k : from) to[begin[digit(k)]++] = k;
      std::swap(from, to);
    }
  }
  std::vector<std::int32_t> samples;
  samples.reserve(from.size());
  for (const Keyed& k : from) samples.push_back(k.sample);
  return samples;
}

std::int64_t work_at(std::span<const std::int64_t> work, std::int32_t i) {
  return work[static_cast<std::size_t>(i)];
}

// The samples of one future rank, a chain. Ordered by work, then by the samples themselves: no two sets have
// one in common, so the first decides.
struct ItemSet {
  std::int64_t sum = 0;
  std::int32_t first = 0, last = 0;

  friend bool operator<(const ItemSet& a, const ItemSet& b) {
    return a.sum != b.sum ? a.sum < b.sum : a.first < b.first;
  }
};

// One set for each rank, in descending order, of the same number of samples each.
struct State {
  std::vector<ItemSet> sets;
  std::int64_t samples = 1;
  std::int64_t spread() const { return sets.front().sum - sets.back().sum; }
};

// The state with the largest spread comes first, then the one whose first set has more work, more samples, or
// the higher first sample.
struct ComesLater {
  bool operator()(const State& a, const State& b) const {
    if (a.spread() != b.spread()) return a.spread() < b.spread();
    const ItemSet &x = a.sets.front(), &y = b.sets.front();
    return x.sum == y.sum && a.samples != b.samples ? a.samples < b.samples : x < y;
  }
};

// States of `ranks` samples of similar work each.
std::vector<State> first_states(std::span<const std::int64_t> work, std::size_t ranks) {
  const std::vector<std::int32_t> order = sorted_by(work, Order::ascending);
  std::vector<State> states;
  states.reserve(work.size() / ranks);
  for (std::size_t at = 0; at < order.size(); at += ranks) {
    State& state = states.emplace_back();
    state.sets.reserve(ranks);
    for (std::size_t j = ranks; j-- > 0;)
      state.sets.push_back({work_at(work, order[at + j]), order[at + j], order[at + j]});
  }
  return states;
}

// The largest sets of one state get the smallest of the other. next[i]: the sample that follows i in a chain.
State merged(State a, const State& b, std::vector<std::int32_t>& next) {
  const std::size_t ranks = a.sets.size();
  for (std::size_t i = 0; i < ranks; ++i) {
    ItemSet& to = a.sets[i];
    const ItemSet& from = b.sets[ranks - 1 - i];
    to.sum += from.sum;
    next[static_cast<std::size_t>(to.last)] = from.first;
    to.last = from.last;
  }
  a.samples += b.samples;
  std::sort(a.sets.begin(), a.sets.end(), [](const ItemSet& x, const ItemSet& y) { return y < x; });
  return a;
}

// Takes the first state out; std::priority_queue gives only copies.
State pop(std::vector<State>& heap) {
  std::pop_heap(heap.begin(), heap.end(), ComesLater());
  State first = std::move(heap.back());
  heap.pop_back();
  return first;
}

// Of the rank of each sample; counts[r]: the samples of rank r.
Partition parts_of(const std::vector<std::int32_t>& rank_of, const std::vector<std::size_t>& counts) {
  Partition parts(counts.size());
  for (std::size_t r = 0; r < parts.size(); ++r) parts[r].reserve(counts[r]);
  for (std::size_t i = 0; i < rank_of.size(); ++i)
    parts[static_cast<std::size_t>(rank_of[i])].push_back(static_cast<std::int32_t>(i));
  return parts;
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
  std::vector<Load> least;  // a heap
  least.reserve(static_cast<std::size_t>(ranks));
  for (int r = 0; r < ranks; ++r) least.emplace_back(0, r);
  std::vector<std::int32_t> rank_of(work.size());
  std::vector<std::size_t> counts(static_cast<std::size_t>(ranks));
  for (const std::int32_t sample : sorted_by(work, Order::descending)) {
    const std::int32_t rank = least.front().second;
    rank_of[static_cast<std::size_t>(sample)] = rank;
    ++counts[static_cast<std::size_t>(rank)];
    add_to_first(least, work_at(work, sample));
  }
  return parts_of(rank_of, counts);
}

Partition equal_size_partition(std::span<const std::int64_t> work, int ranks) {
  const auto n = static_cast<std::size_t>(ranks);
  if (work.size() % n != 0)
    fail_usage(
        "{} samples cannot be divided into {} equal parts: make training.batch_size a multiple of the ranks",
        work.size(), ranks);
  if (work.empty()) return Partition(n);
  std::vector<std::int32_t> next(work.size()), rank_of(work.size());
  std::vector<State> heap = first_states(work, n);
  std::make_heap(heap.begin(), heap.end(), ComesLater());
  while (heap.size() > 1) {
    State first = pop(heap);
    heap.push_back(merged(std::move(first), pop(heap), next));
    std::push_heap(heap.begin(), heap.end(), ComesLater());
  }
  const std::vector<ItemSet>& sets = heap.front().sets;
  for (std::size_t r = 0; r < n; ++r) {
    for (std::int32_t i = sets[r].first;; i = next[static_cast<std::size_t>(i)]) {
      rank_of[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(r);
      if (i == sets[r].last) break;
    }
  }
  return parts_of(rank_of, std::vector<std::size_t>(n, work.size() / n));
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

std::vector<std::int64_t> work_of_ranks(std::span<const std::int64_t> work, const Partition& partition) {
  std::vector<std::int64_t> sums;
  sums.reserve(partition.size());
  for (const auto& part : partition) {
    std::int64_t& sum = sums.emplace_back(0);
    for (const std::int32_t i : part) sum += work_at(work, i);
  }
  return sums;
}

double imbalance(std::span<const std::int64_t> work_of_ranks) {
  double most = 0, all = 0;
  for (const std::int64_t work : work_of_ranks) {
    most = std::max(most, static_cast<double>(work));
    all += static_cast<double>(work);
  }
  return all > 0 ? most * static_cast<double>(work_of_ranks.size()) / all : 1.0;
}

double imbalance(std::span<const std::int64_t> work, const Partition& partition) {
  return imbalance(work_of_ranks(work, partition));
}

void DivisionFigures::add(const Division& division, double took_ms) {
  const auto add_to = [](std::vector<std::int64_t>& sums, const std::vector<std::int64_t>& terms) {
    sums.resize(terms.size(), 0);
    for (std::size_t r = 0; r < terms.size(); ++r) sums[r] += terms[r];
  };
  add_to(work, division.work);
  add_to(work_of_slices, division.work_of_slices);
  ms += took_ms;
}

}  // namespace hstu
