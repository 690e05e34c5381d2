#include "hstu/dataset/anchor_builder.h"

#include <algorithm>
#include <array>
#include <limits>
#include <mutex>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/base/floor_divide.h"
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

// The events of a user in the segment that can be anchors: those with min_history earlier ones.
struct Candidates {
  std::int64_t start, first, end;  // positions of the user's first event, of the first candidate, of the end
};

// A segment whose anchors are looked for.
struct Source {
  const Dataset& dataset;
  std::size_t number;
  const AnchorRule& rule;
  const Segment& segment() const { return dataset.segments()[number]; }
};

// The first event of a user in the segment that has min_history earlier events, those of earlier segments
// included.
std::int64_t first_candidate(const Source& source, std::int64_t user, PositionRange events) {
  if (source.number == 0 || source.rule.min_history == 0)
    return events.begin + std::min(events.size(), source.rule.min_history);
  const std::int64_t id = source.segment().user_ids()[static_cast<std::size_t>(user)];
  std::vector<PositionRange> earlier;
  for (std::size_t s = 0; s < source.number; ++s)
    earlier.push_back(source.dataset.segments()[s].events_of_id(id));
  const MappedColumn& time = source.dataset.time();
  const auto has_enough = [&](std::int64_t position) {
    std::int64_t before = position - events.begin;
    for (const PositionRange& range : earlier) {
      time.visit([&](const auto* times) {
        before +=
            std::upper_bound(times + range.begin, times + range.end, times[position]) - (times + range.begin);
      });
    }
    return before >= source.rule.min_history;
  };
  PositionRange left = events;
  while (left.size() > 0) {
    const std::int64_t middle = left.begin + left.size() / 2;
    if (has_enough(middle)) {
      left.end = middle;
    } else {
      left.begin = middle + 1;
    }
  }
  return left.begin;
}

// Calls body(user, candidates) for the users [first, end) of the segment that have candidates.
template <typename Body>
void for_each_user(const Source& source, std::int64_t first, std::int64_t end, const Body& body) {
  for (std::int64_t u = first; u < end; ++u) {
    const PositionRange events = source.segment().events_of(u);
    const std::int64_t candidate = first_candidate(source, u, events);
    if (candidate < events.end)
      body(static_cast<std::size_t>(u), Candidates{events.begin, candidate, events.end});
  }
}

// Releases the pages of the events of users [first, end), which have been processed.
void release_events(const Source& source, std::int64_t first, std::int64_t end) {
  const std::int64_t begin = source.segment().events_of(first).begin;
  const auto count = static_cast<std::size_t>(source.segment().events_of(end - 1).end - begin);
  release_mapped(source.dataset.action().data() + begin, count);
  source.dataset.time().visit([&](const auto* time) { release_mapped(time + begin, count * sizeof(*time)); });
}

// A user's events are in the order of time, so the first and the last anchor have the extreme times.
TimeSpan find_time_span(const Source& source, const std::vector<std::int64_t>& blocks) {
  const Dataset& dataset = source.dataset;
  const auto action = dataset.action();
  const auto rankable = [&](std::int64_t p) {
    return (action[static_cast<std::size_t>(p)] & kRankableBit) != 0;
  };
  TimeSpan span;
  std::mutex mutex;
  parallel_user_blocks(blocks, [&](std::int64_t first_user, std::int64_t end_user) {
    TimeSpan local;
    for_each_user(source, first_user, end_user, [&](std::size_t, const Candidates& candidates) {
      std::int64_t first = candidates.first, last = candidates.end - 1;
      while (first <= last && !rankable(first)) ++first;
      if (first > last) return;
      while (!rankable(last)) --last;
      for (const std::int64_t p : {first, last}) {
        local.min = std::min(local.min, dataset.time()[p]);
        local.max = std::max(local.max, dataset.time()[p]);
      }
    });
    release_events(source, first_user, end_user);
    const std::scoped_lock lock(mutex);
    span.min = std::min(span.min, local.min);
    span.max = std::max(span.max, local.max);
  });
  return span;
}

// window(time), with the rule's constants precomputed.
class Windows {
 public:
  Windows(const AnchorRule& rule, const TimeSpan& span, std::optional<std::int64_t> grid)
      : begin_(span.min), seconds_(rule.window_seconds == 0 ? span.max - span.min + 1 : rule.window_seconds) {
    if (grid && rule.window_seconds > 0) begin_ = *grid + floor_divide(span.min - *grid, seconds_) * seconds_;
    count_ = (span.max - begin_) / seconds_ + 1;
  }
  std::int64_t begin() const { return begin_; }
  std::int64_t operator()(std::int64_t time) const { return (time - begin_) / seconds_; }
  std::int64_t count() const { return count_; }

 private:
  std::int64_t begin_, seconds_, count_;
};

template <typename T>
void check_chronology(const Source& source, const T* time, std::size_t user, const Candidates& events) {
  const T* const wrong = std::is_sorted_until(time + events.start, time + events.end);
  if (wrong == time + events.end) return;
  fail("{}: the events of user {} are not in the order of time (position {}): prepare the dataset again",
       (source.segment().folder() / kTimestampFile).string(), source.segment().user_ids()[user],
       wrong - time);
}

// Calls visit(list, window, position) for the anchors of users [first, end), ascending in position.
template <typename T, typename Visit>
void visit_anchors(const Source& source, const T* time, const Windows& windows, std::int64_t first,
                   std::int64_t end, const Visit& visit) {
  const std::uint8_t* const action = source.dataset.action().data();
  for_each_user(source, first, end, [&](std::size_t user, const Candidates& candidates) {
    const bool held_out = source.rule.users.holds_out(source.segment().user_ids()[user]);
    const UserList list = held_out ? kHeldOut : kTraining;
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

AnchorBuilder::AnchorBuilder(const Dataset& dataset, std::size_t segment, const AnchorRule& rule,
                             std::optional<std::int64_t> grid, std::int64_t block_events)
    : dataset_(dataset),
      segment_(segment),
      rule_(rule),
      grid_(grid),
      blocks_(user_blocks(dataset.segments()[segment], block_events)) {}

AnchorCounts AnchorBuilder::count() const {
  const Source source{dataset_, segment_, rule_};
  TimeSpan span = find_time_span(source, blocks_);
  if (segment_ == 0) check_span(dataset_, rule_, span);
  if (span.min > span.max) span.min = span.max = dataset_.time()[source.segment().first()];
  const Windows windows(rule_, span, grid_);
  check_windows(rule_, span, windows);

  const std::vector<std::int64_t> zeros(static_cast<std::size_t>(windows.count()));
  std::array<std::vector<std::int64_t>, kUserLists> counts{zeros, zeros};
  std::mutex mutex;
  std::int64_t events = 0;
  Progress progress("counting anchors", source.segment().end() - source.segment().first(), "events");
  dataset_.time().visit([&](const auto* time) {
    parallel_user_blocks(blocks_, [&](std::int64_t first, std::int64_t end) {
      for_each_user(source, first, end, [&](std::size_t user, const Candidates& candidates) {
        check_chronology(source, time, user, candidates);
      });
      std::array<std::vector<std::int64_t>, kUserLists> local{zeros, zeros};
      visit_anchors(source, time, windows, first, end,
                    [&](UserList list, std::size_t window, std::int64_t) { ++local[list][window]; });
      release_events(source, first, end);
      const std::scoped_lock lock(mutex);
      for (const UserList list : {kTraining, kHeldOut}) {
        for (std::size_t w = 0; w < local[list].size(); ++w) counts[list][w] += local[list][w];
      }
      events += source.segment().events_of(end - 1).end - source.segment().events_of(first).begin;
      progress.advance_to(events);
    });
  });
  progress.finish();
  return {.time_min = span.min,
          .time_max = span.max,
          .first_window = windows.begin(),
          .training_users = running_sums(counts[kTraining]),
          .held_out_users = running_sums(counts[kHeldOut])};
}

// Rounds of a few blocks: each block is sorted separately, then the blocks get their places in order, then
// they are copied there.
void AnchorBuilder::place(const AnchorCounts& counts, const PutPositions& training_users,
                          const PutPositions& held_out_users) const {
  const Source source{dataset_, segment_, rule_};
  const Windows windows(rule_, {counts.time_min, counts.time_max}, grid_);
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
        visit_anchors(source, time, windows, blocks_[block], blocks_[block + 1],
                      [&](UserList list, std::size_t window, std::int64_t position) {
                        anchors[list].push_back({position, static_cast<std::uint32_t>(window)});
                      });
        release_events(source, blocks_[block], blocks_[block + 1]);
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
