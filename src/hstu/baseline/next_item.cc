#include "hstu/baseline/next_item.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>
#include <numeric>

#include "hstu/base/error.h"
#include "hstu/base/threads.h"
#include "hstu/dataset/user_blocks.h"
#include "hstu/metrics/rank_metrics.h"

namespace hstu {
namespace {

constexpr std::int64_t kBlockOfEvents = std::int64_t{1} << 18;

constexpr std::uint64_t pair_of(std::int32_t first, std::int32_t second) {
  return static_cast<std::uint64_t>(first) << 32 | static_cast<std::uint32_t>(second);
}

// (U) the first of `evaluated` of each user in the order of the user's events; nowhere: there is none.
std::vector<EventPlace> first_evaluated(const Dataset& dataset, std::span<const std::int64_t> evaluated) {
  std::vector<EventPlace> first(static_cast<std::size_t>(dataset.users()));
  for (const std::int64_t p : evaluated) {
    EventPlace& known = first[static_cast<std::size_t>(dataset.user_at(p))];
    const EventPlace place{dataset.time()[p], p};
    if (place.is_before(known)) known = place;
  }
  return first;
}

}  // namespace

// An event to be predicted, by indices of the catalogue.
struct NextItemBaselines::Question {
  std::int32_t target = kUnknown, latest = kUnknown;
  std::vector<std::int32_t> excluded;  // each once; the target is not asked for then
};

std::int32_t NextItemBaselines::Followers::count(std::int32_t item) const {
  const auto found = std::lower_bound(items.begin(), items.end(), item);
  return found != items.end() && *found == item ? counts[static_cast<std::size_t>(found - items.begin())] : 0;
}

NextItemBaselines::NextItemBaselines(const Dataset& dataset, const Holdout& holdout,
                                     const SampleBuilder& samples, std::span<const std::int64_t> evaluated,
                                     std::span<const std::int64_t> catalogue)
    : dataset_(dataset),
      samples_(samples),
      items_(catalogue.begin(), catalogue.end()),
      counts_(catalogue.size(), 0) {
  require(std::ssize(items_) < std::numeric_limits<std::int32_t>::max(), "expected fewer items, found {}",
          items_.size());
  count_events(holdout, first_evaluated(dataset, evaluated));
  sort_by_popularity();
}

std::int32_t NextItemBaselines::index_of(std::int64_t id) const {
  const auto found = std::lower_bound(items_.begin(), items_.end(), id);
  return found != items_.end() && *found == id ? static_cast<std::int32_t>(found - items_.begin()) : kUnknown;
}

NextItemBaselines::Followers NextItemBaselines::followers(std::int32_t item) const {
  if (item == kUnknown) return {};
  const auto i = static_cast<std::size_t>(item);
  const auto begin = static_cast<std::size_t>(begin_[i]), n = static_cast<std::size_t>(begin_[i + 1]) - begin;
  return {std::span(follower_).subspan(begin, n), std::span(times_).subspan(begin, n)};
}

void NextItemBaselines::count_events(const Holdout& holdout, std::span<const EventPlace> first) {
  const std::uint8_t of_pools = samples_.history_rule().pool_bits;
  std::mutex mutex;
  std::vector<std::uint64_t> pairs;
  parallel_user_blocks(user_blocks(dataset_, kBlockOfEvents), [&](std::int64_t begin, std::int64_t end) {
    std::vector<std::uint64_t> of_block;
    for (std::int64_t u = begin; u < end; ++u) {
      const bool held_out = holdout.users.holds_out(dataset_.user_ids()[static_cast<std::size_t>(u)]);
      std::int32_t before = kUnknown;
      dataset_.events_of(u).each([&](std::int64_t p) {
        const std::uint8_t action = dataset_.action()[static_cast<std::size_t>(p)];
        if ((action & (of_pools | kRankableBit)) == 0) return;
        const EventPlace place{dataset_.time()[p], p};
        if (!holdout.trains(u, held_out, p, place.time) ||
            !place.is_before(first[static_cast<std::size_t>(u)]))
          return;
        const std::int32_t item = index_of(dataset_.item()[p]);
        if (item != kUnknown)
          std::atomic_ref(counts_[static_cast<std::size_t>(item)]).fetch_add(1, std::memory_order_relaxed);
        if (item != kUnknown && before != kUnknown) of_block.push_back(pair_of(before, item));
        if ((action & of_pools) != 0) before = item;
      });
    }
    const std::scoped_lock lock(mutex);
    pairs.insert(pairs.end(), of_block.begin(), of_block.end());
  });
  count_pairs(std::move(pairs));
}

void NextItemBaselines::count_pairs(std::vector<std::uint64_t> pairs) {
  std::sort(pairs.begin(), pairs.end());
  begin_.assign(items_.size() + 1, 0);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (i > 0 && pairs[i] == pairs[i - 1]) {
      ++times_.back();
      continue;
    }
    ++begin_[static_cast<std::size_t>(pairs[i] >> 32) + 1];
    follower_.push_back(static_cast<std::int32_t>(pairs[i] & 0xFFFFFFFFU));
    times_.push_back(1);
  }
  std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
}

void NextItemBaselines::sort_by_popularity() {
  std::vector<std::int32_t> order(items_.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return counts_[static_cast<std::size_t>(a)] > counts_[static_cast<std::size_t>(b)];
  });
  place_.resize(items_.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    place_[static_cast<std::size_t>(order[i])] = static_cast<std::int32_t>(i);
}

// The items before the target. Where nothing distinguishes two items, popularity does.
std::int64_t NextItemBaselines::better(NextItemRule rule, const Question& question) const {
  const auto place = [&](std::int32_t item) { return place_[static_cast<std::size_t>(item)]; };
  const std::int64_t target = place(question.target);
  if (rule == NextItemRule::popularity) {
    std::int64_t n = target;
    for (const std::int32_t item : question.excluded) n -= place(item) < target ? 1 : 0;
    return n;
  }
  Followers preferred = followers(question.latest);
  const std::int32_t once = 1;
  if (rule == NextItemRule::last)
    preferred = question.latest == kUnknown ? Followers{}
                                            : Followers{std::span(&question.latest, 1), std::span(&once, 1)};
  const std::int32_t times = preferred.count(question.target);
  const auto is_before = [&](std::int32_t item, std::int32_t count) {
    return count > times || (count == times && place(item) < target);
  };
  // All items as if none were preferred, then those that are: a preferred item moves before or behind.
  std::int64_t n = times == 0 ? target : 0;
  for (std::size_t i = 0; i < preferred.items.size(); ++i) {
    n += is_before(preferred.items[i], preferred.counts[i]) ? 1 : 0;
    n -= times == 0 && place(preferred.items[i]) < target ? 1 : 0;
  }
  for (const std::int32_t item : question.excluded) n -= is_before(item, preferred.count(item)) ? 1 : 0;
  return n;
}

std::vector<std::int64_t> NextItemBaselines::ranks(NextItemRule rule, std::span<const std::int64_t> positions,
                                                   std::int64_t seen_events) const {
  constexpr std::int64_t kGrain = 512;
  std::vector<std::int64_t> ranks(positions.size());
  parallel_blocks(std::ssize(positions), kGrain, [&](std::int64_t begin, std::int64_t end) {
    SampleScratch scratch = samples_.scratch();
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      const std::int64_t p = positions[i];
      Question question{.target = index_of(dataset_.item()[p]), .latest = kUnknown, .excluded = {}};
      if (question.target == kUnknown) {
        ranks[i] = kUnranked;
        continue;
      }
      std::span<const std::int64_t> history = samples_.history_of(p, scratch);
      if (!history.empty()) question.latest = index_of(dataset_.item()[history.back()]);
      bool repeats = false;
      const auto exclude = [&](std::int64_t earlier) {
        const std::int32_t item = index_of(dataset_.item()[earlier]);
        if (item != kUnknown) question.excluded.push_back(item);
        repeats = repeats || item == question.target;
      };
      if (seen_events == kAllEvents) {
        dataset_.events_before(dataset_.user_at(p), p).each(exclude);
      } else {
        const std::int64_t seen = std::min(seen_events, std::ssize(history));
        for (const std::int64_t earlier : history.last(static_cast<std::size_t>(seen))) exclude(earlier);
      }
      std::vector<std::int32_t>& excluded = question.excluded;
      std::sort(excluded.begin(), excluded.end());
      excluded.erase(std::unique(excluded.begin(), excluded.end()), excluded.end());
      ranks[i] = repeats ? kUnranked : 1 + better(rule, question);
    }
  });
  return ranks;
}

}  // namespace hstu
