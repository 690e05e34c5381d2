#include "hstu/dataset/anchor_builder.h"

#include <algorithm>
#include <array>
#include <limits>
#include <mutex>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/base/progress.h"
#include "hstu/base/text.h"
#include "hstu/dataset/user_blocks.h"

namespace hstu {
namespace {

constexpr std::int64_t kMaxWindows = 1 << 20;
constexpr std::int64_t kBlocksPerThread = 2;  // of one round, so that a slow block does not delay the others

enum UserList : std::size_t { kTraining, kHeldOut, kUserLists };

struct TimeSpan {
  std::int64_t min = std::numeric_limits<std::int64_t>::max();
  std::int64_t max = std::numeric_limits<std::int64_t>::min();
};

// The events of a user that can be anchors: those after the first min_history.
struct Candidates {
  std::int64_t start, first, end;  // positions of the user's first event, of the first candidate, of the end
};

// Calls body(user, candidates) for the users of [first, end) that have candidates.
template <typename Body>
void for_each_user(const Dataset& dataset, const AnchorRule& rule, std::int64_t first, std::int64_t end,
                   const Body& body) {
  const auto offsets = dataset.user_offsets();
  for (auto u = static_cast<std::size_t>(first); u < static_cast<std::size_t>(end); ++u) {
    if (offsets[u + 1] - offsets[u] <= rule.min_history) continue;
    body(u, Candidates{offsets[u], offsets[u] + rule.min_history, offsets[u + 1]});
  }
}

// Releases the pages of the events of users [first, end), which have been processed.
void release_events(const Dataset& dataset, std::int64_t first, std::int64_t end) {
  const std::int64_t begin = dataset.user_offsets()[static_cast<std::size_t>(first)];
  const auto count = static_cast<std::size_t>(dataset.user_offsets()[static_cast<std::size_t>(end)] - begin);
  release_mapped(dataset.action().data() + begin, count);
  dataset.time().visit([&](const auto* time) { release_mapped(time + begin, count * sizeof(*time)); });
}

// A user's events are in the order of time, so the first and the last anchor have the extreme times.
TimeSpan find_time_span(const Dataset& dataset, const AnchorRule& rule,
                        const std::vector<std::int64_t>& blocks) {
  const auto action = dataset.action();
  const auto rankable = [&](std::int64_t p) {
    return (action[static_cast<std::size_t>(p)] & kRankableBit) != 0;
  };
  TimeSpan span;
  std::mutex mutex;
  parallel_user_blocks(blocks, [&](std::int64_t first_user, std::int64_t end_user) {
    TimeSpan local;
    for_each_user(dataset, rule, first_user, end_user, [&](std::size_t, const Candidates& candidates) {
      std::int64_t first = candidates.first, last = candidates.end - 1;
      while (first <= last && !rankable(first)) ++first;
      if (first > last) return;
      while (!rankable(last)) --last;
      for (const std::int64_t p : {first, last}) {
        local.min = std::min(local.min, dataset.time()[p]);
        local.max = std::max(local.max, dataset.time()[p]);
      }
    });
    release_events(dataset, first_user, end_user);
    const std::scoped_lock lock(mutex);
    span.min = std::min(span.min, local.min);
    span.max = std::max(span.max, local.max);
  });
  return span;
}

// window(time), with the rule's constants precomputed.
class Windows {
 public:
  Windows(const AnchorRule& rule, const TimeSpan& span)
      : begin_(span.min),
        seconds_(rule.window_seconds == 0 ? span.max - span.min + 1 : rule.window_seconds),
        count_((span.max - span.min) / seconds_ + 1) {}
  std::int64_t operator()(std::int64_t time) const { return (time - begin_) / seconds_; }
  std::int64_t count() const { return count_; }

 private:
  std::int64_t begin_, seconds_, count_;
};

template <typename T>
void check_chronology(const Dataset& dataset, const T* time, std::size_t user, const Candidates& events) {
  const T* const wrong = std::is_sorted_until(time + events.start, time + events.end);
  if (wrong == time + events.end) return;
  fail("{}: the events of user {} are not in the order of time (position {}): prepare the dataset again",
       (dataset.folder() / kTimestampFile).string(), dataset.user_ids()[user], wrong - time);
}

// Calls visit(list, window, position) for the anchors of users [first, end), ascending in position.
template <typename T, typename Visit>
void visit_anchors(const Dataset& dataset, const AnchorRule& rule, const T* time, const Windows& windows,
                   std::int64_t first, std::int64_t end, const Visit& visit) {
  const std::uint8_t* const action = dataset.action().data();
  for_each_user(dataset, rule, first, end, [&](std::size_t user, const Candidates& candidates) {
    const UserList list = rule.users.holds_out(dataset.user_ids()[user]) ? kHeldOut : kTraining;
    for (std::int64_t p = candidates.first; p < candidates.end; ++p) {
      if (action[p] & kRankableBit) {
        visit(list, static_cast<std::size_t>(windows(static_cast<std::int64_t>(time[p]))), p);
      }
    }
  });
}

// One block's anchors, sorted by list and window.
struct SortedBlock {
  std::array<std::vector<std::int64_t>, kUserLists> positions;
  std::array<std::vector<std::int64_t>, kUserLists> ends;    // (W) in `positions`, of each window
  std::array<std::vector<std::int64_t>, kUserLists> places;  // (W) in the whole list, of each window's first
};

struct Anchor {
  std::int64_t position;
  std::uint32_t window;
};

// Counting sort, stable in position.
SortedBlock sort_block(const std::array<std::vector<Anchor>, kUserLists>& anchors, std::size_t windows) {
  SortedBlock block;
  for (const UserList list : {kTraining, kHeldOut}) {
    std::vector<std::int64_t>& ends = block.ends[list];
    ends.assign(windows, 0);
    for (const Anchor& anchor : anchors[list]) ++ends[anchor.window];
    std::int64_t total = 0;
    for (std::int64_t& end : ends) total += std::exchange(end, total);
    block.positions[list].resize(anchors[list].size());
    for (const Anchor& anchor : anchors[list]) {
      block.positions[list][static_cast<std::size_t>(ends[anchor.window]++)] = anchor.position;
    }
  }
  return block;
}

void put_block(const SortedBlock& block, UserList list, const PutPositions& put) {
  std::int64_t begin = 0;
  for (std::size_t w = 0; w < block.ends[list].size(); ++w) {
    const std::int64_t end = block.ends[list][w];
    if (end > begin) {
      put(block.places[list][w],
          std::span(block.positions[list])
              .subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)));
    }
    begin = end;
  }
}

void check_span(const Dataset& dataset, const AnchorRule& rule, const TimeSpan& span) {
  if (span.min > span.max) {
    fail_usage(
        "min_history = {} leaves no sample: the dataset {} has {} events ({} of them rankable) of {} users, "
        "and no rankable event has that many earlier events of its user; decrease min_history or prepare "
        "more "
        "events",
        rule.min_history, dataset.folder().string(), with_separators(dataset.events()),
        with_separators(dataset.manifest().counts.rankable), with_separators(dataset.users()));
  }
}

void check_windows(const AnchorRule& rule, const TimeSpan& span, const Windows& windows) {
  if (windows.count() > kMaxWindows) {
    fail_usage(
        "window_seconds = {} divides {} seconds into {} windows, more than {}; increase window_seconds",
        rule.window_seconds, span.max - span.min + 1, windows.count(), kMaxWindows);
  }
}

std::vector<std::int64_t> running_sums(const std::vector<std::int64_t>& counts) {
  std::vector<std::int64_t> sums{0};
  for (const std::int64_t count : counts) sums.push_back(sums.back() + count);
  return sums;
}

}  // namespace

AnchorBuilder::AnchorBuilder(const Dataset& dataset, const AnchorRule& rule, std::int64_t block_events)
    : dataset_(dataset), rule_(rule), blocks_(user_blocks(dataset, block_events)) {}

AnchorCounts AnchorBuilder::count() const {
  const TimeSpan span = find_time_span(dataset_, rule_, blocks_);
  check_span(dataset_, rule_, span);
  const Windows windows(rule_, span);
  check_windows(rule_, span, windows);

  const std::vector<std::int64_t> zeros(static_cast<std::size_t>(windows.count()));
  std::array<std::vector<std::int64_t>, kUserLists> counts{zeros, zeros};
  std::mutex mutex;
  std::int64_t events = 0;
  Progress progress("counting anchors", dataset_.events(), "events");
  dataset_.time().visit([&](const auto* time) {
    parallel_user_blocks(blocks_, [&](std::int64_t first, std::int64_t end) {
      for_each_user(dataset_, rule_, first, end, [&](std::size_t user, const Candidates& candidates) {
        check_chronology(dataset_, time, user, candidates);
      });
      std::array<std::vector<std::int64_t>, kUserLists> local{zeros, zeros};
      visit_anchors(dataset_, rule_, time, windows, first, end,
                    [&](UserList list, std::size_t window, std::int64_t) { ++local[list][window]; });
      release_events(dataset_, first, end);
      const std::scoped_lock lock(mutex);
      for (const UserList list : {kTraining, kHeldOut}) {
        for (std::size_t w = 0; w < local[list].size(); ++w) counts[list][w] += local[list][w];
      }
      events += dataset_.user_offsets()[static_cast<std::size_t>(end)] -
                dataset_.user_offsets()[static_cast<std::size_t>(first)];
      progress.advance_to(events);
    });
  });
  progress.finish();
  return {.time_min = span.min,
          .time_max = span.max,
          .training_users = running_sums(counts[kTraining]),
          .held_out_users = running_sums(counts[kHeldOut])};
}

// Rounds of a few blocks: each block is sorted separately, then the blocks get their places in order, then
// they are copied there.
void AnchorBuilder::place(const AnchorCounts& counts, const PutPositions& training_users,
                          const PutPositions& held_out_users) const {
  const Windows windows(rule_, {counts.time_min, counts.time_max});
  const auto window_count = static_cast<std::size_t>(windows.count());
  std::array<std::vector<std::int64_t>, kUserLists> next{counts.training_users, counts.held_out_users};
  Progress progress("placing anchors", counts.training_users.back() + counts.held_out_users.back(),
                    "anchors");
  std::int64_t placed = 0;
  const std::int64_t blocks = static_cast<std::int64_t>(blocks_.size()) - 1;
  const std::int64_t round = kBlocksPerThread * threads();
  std::vector<SortedBlock> sorted;
  for (std::int64_t begin = 0; begin < blocks; begin += round) {
    const std::int64_t count = std::min(round, blocks - begin);
    sorted.assign(static_cast<std::size_t>(count), {});
    dataset_.time().visit([&](const auto* time) {
      parallel_blocks(count, 1, [&](std::int64_t i, std::int64_t) {
        const auto block = static_cast<std::size_t>(begin + i);
        std::array<std::vector<Anchor>, kUserLists> anchors;
        visit_anchors(dataset_, rule_, time, windows, blocks_[block], blocks_[block + 1],
                      [&](UserList list, std::size_t window, std::int64_t position) {
                        anchors[list].push_back({position, static_cast<std::uint32_t>(window)});
                      });
        release_events(dataset_, blocks_[block], blocks_[block + 1]);
        sorted[static_cast<std::size_t>(i)] = sort_block(anchors, window_count);
      });
    });
    for (SortedBlock& block : sorted) {
      for (const UserList list : {kTraining, kHeldOut}) {
        block.places[list].assign(next[list].begin(), next[list].end() - 1);
        for (std::size_t w = 0; w < window_count; ++w) {
          next[list][w] += block.ends[list][w] - (w == 0 ? 0 : block.ends[list][w - 1]);
        }
        placed += static_cast<std::int64_t>(block.positions[list].size());
      }
    }
    parallel_blocks(count, 1, [&](std::int64_t i, std::int64_t) {
      put_block(sorted[static_cast<std::size_t>(i)], kTraining, training_users);
      put_block(sorted[static_cast<std::size_t>(i)], kHeldOut, held_out_users);
    });
    progress.advance_to(placed);
  }
  progress.finish();
}

}  // namespace hstu
