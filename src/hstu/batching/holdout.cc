#include "hstu/batching/holdout.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <vector>

#include "hstu/base/error.h"
#include "hstu/base/threads.h"

namespace hstu {
namespace {

constexpr std::int64_t kGrain = 1 << 14;  // anchors

void check_options(const HoldoutOptions& options) {
  const bool windows = options.windows != 0 || options.first_window != -1;
  const bool fraction = options.fraction != 0;
  const bool seconds = options.seconds != 0;
  const bool split = options.split != LastSplit::none;
  const bool last = options.last != 0 || split;
  if (int{windows} + int{fraction} + int{seconds} + int{options.last != 0} + int{split} > 1) {
    fail_usage(
        "hold-out: expected one of windows, fraction, seconds, last and split, found{}{}{}{}{}; keep one",
        windows ? " windows" : "", fraction ? " fraction" : "", seconds ? " seconds" : "",
        options.last != 0 ? " last" : "", split ? " split" : "");
  }
  if (options.last < 0) fail_usage("hold-out last: expected at least 0, found {}", options.last);
  if (last && options.train_user_fraction < 1) {
    fail_usage("hold-out {}: every user has held-out samples already; remove it or train_user_fraction = {}",
               split ? "split" : "last", options.train_user_fraction);
  }
  if (options.windows < 0) fail_usage("hold-out windows: expected at least 0, found {}", options.windows);
  if (options.first_window < -1) {
    fail_usage("hold-out first_window: expected a window's index or -1, found {}", options.first_window);
  }
  if (!(options.fraction >= 0 && options.fraction < 1)) {
    fail_usage("hold-out fraction: expected a value in [0, 1), found {}", options.fraction);
  }
  if (options.seconds < 0) fail_usage("hold-out seconds: expected at least 0, found {}", options.seconds);
}

// Windows of the lists by the window of the grid, the last first.
std::map<std::int64_t, std::vector<std::int64_t>, std::greater<>> by_grid(const AnchorIndex& index) {
  std::map<std::int64_t, std::vector<std::int64_t>, std::greater<>> windows;
  for (std::int64_t w = 0; w < index.windows(); ++w)
    windows[index.window_of(index.times[static_cast<std::size_t>(w)].min)].push_back(w);
  return windows;
}

// The time of the anchor that has `later` anchors after it in the order of times: counts windows backwards
// from the last, and reads only the times of those that may contain the anchor.
std::int64_t time_before(const Dataset& dataset, const AnchorIndex& index, std::int64_t later) {
  const AnchorList* const lists[] = {&index.training_users, &index.held_out_users};
  std::vector<AnchorList::Window> windows;
  std::int64_t size = 0;
  for (const auto& [number, of_number] : by_grid(index)) {
    later -= size;
    size = 0;
    windows.clear();
    for (const std::int64_t w : of_number) {
      for (const AnchorList* list : lists) {
        windows.push_back(list->window(w));
        size += std::ssize(windows.back());
      }
    }
    if (later < size) break;
  }

  std::vector<std::int64_t> times(static_cast<std::size_t>(size));
  std::size_t filled = 0;
  for (const AnchorList::Window positions : windows) {
    parallel_blocks(std::ssize(positions), kGrain, [&](std::int64_t begin, std::int64_t end) {
      for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
        times[filled + i] = dataset.time()[dataset.checked(positions[i])];
      }
    });
    filled += positions.size();
  }
  const auto found = times.begin() + (size - 1 - later);
  std::nth_element(times.begin(), found, times.end());
  return *found;
}

// Time and position of the first of each user's last `count` anchors.
std::shared_ptr<const std::vector<EventPlace>> last_anchors(const Dataset& dataset, std::int64_t count,
                                                            std::int64_t min_history) {
  const auto action = dataset.action();
  auto first = std::make_shared<std::vector<EventPlace>>(static_cast<std::size_t>(dataset.users()));
  parallel_blocks(dataset.users(), kGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t u = begin; u < end; ++u) {
      const UserEvents events = dataset.events_of(u);
      std::int64_t earlier = events.size(), left = count;
      for (std::size_t r = events.ranges(); r-- > 0;) {
        const PositionRange range = events.range(r);
        for (std::int64_t p = range.end - 1; p >= range.begin && --earlier >= min_history && left > 0; --p) {
          if ((action[static_cast<std::size_t>(p)] & kRankableBit) == 0) continue;
          (*first)[static_cast<std::size_t>(u)] = {dataset.time()[p], p};
          --left;
        }
      }
    }
  });
  return first;
}

// The last event of a user is the test; with `valid` the one before it is scored during training.
void hold_out_split(const Dataset& dataset, std::int64_t min_history, const HoldoutOptions& options,
                    Holdout& holdout) {
  const auto test = last_anchors(dataset, 1, min_history);
  if (options.split == LastSplit::paper) {
    holdout.last = 1;
    holdout.last_begin = test;
    return;
  }
  holdout.last = 2;
  holdout.last_begin = last_anchors(dataset, 2, min_history);
  (options.scores_test ? holdout.scored_begin : holdout.scored_end) = test;
}

// The half-open times of held-out windows.
void hold_out_windows(const AnchorIndex& index, const HoldoutOptions& options, Holdout& holdout) {
  const std::int64_t windows = index.window_of(index.time_max) + 1;
  const bool last = options.first_window == -1;
  const std::int64_t first = last ? windows - options.windows : options.first_window;
  if (first < 1 || first >= windows) {
    fail_usage(
        "hold-out windows: the anchors span {} windows of {} s; holding out {} leaves no window on one side; "
        "hold out fewer, or set a smaller window_seconds",
        windows, index.rule.window_seconds,
        last ? fmt::format("the last {}", options.windows) : fmt::format("from window {} on", first));
  }
  const std::int64_t end = last || options.windows == 0 ? windows : first + options.windows;
  holdout.time_begin = index.window_begin(first);
  if (end < windows) holdout.time_end = index.window_begin(end);
}

}  // namespace

Holdout resolve_holdout(const Dataset& dataset, const AnchorIndex& index, const HoldoutOptions& options) {
  check_options(options);
  Holdout holdout;
  holdout.users = index.rule.users;
  if (options.windows != 0 || options.first_window != -1) hold_out_windows(index, options, holdout);
  if (options.fraction != 0) {
    const double wanted = options.fraction * static_cast<double>(index.count());
    const auto evaluation = std::clamp<std::int64_t>(std::llround(wanted), 1, index.count());
    holdout.time_begin = time_before(dataset, index, evaluation - 1);
  }
  if (options.last != 0) {
    holdout.last = options.last;
    holdout.last_begin = last_anchors(dataset, options.last, index.rule.min_history);
  }
  if (options.split != LastSplit::none) hold_out_split(dataset, index.rule.min_history, options, holdout);
  if (options.seconds != 0) holdout.time_begin = index.time_max - options.seconds + 1;
  return holdout;
}

}  // namespace hstu
