#include "hstu/batching/holdout.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>
#include <vector>

#include "hstu/base/error.h"

namespace hstu {
namespace {

constexpr std::int64_t kBuckets = 1 << 12;
constexpr std::int64_t kBlocks = 64;

void check_options(const HoldoutOptions& options) {
  const bool windows = options.windows != 0 || options.first_window != -1;
  const bool fraction = options.fraction != 0;
  const bool seconds = options.seconds != 0;
  if (int{windows} + int{fraction} + int{seconds} > 1) {
    fail_usage("hold-out: expected one of windows, fraction and seconds, found{}{}{}; keep one",
               windows ? " windows" : "", fraction ? " fraction" : "", seconds ? " seconds" : "");
  }
  if (options.windows < 0) fail_usage("hold-out windows: expected at least 0, found {}", options.windows);
  if (options.first_window < -1) {
    fail_usage("hold-out first_window: expected a window's index or -1, found {}", options.first_window);
  }
  if (!(options.fraction >= 0 && options.fraction < 1)) {
    fail_usage("hold-out fraction: expected a value in [0, 1), found {}", options.fraction);
  }
  if (options.seconds < 0) fail_usage("hold-out seconds: expected at least 0, found {}", options.seconds);
  if (!(options.train_user_fraction >= 0 && options.train_user_fraction <= 1)) {
    fail_usage("train_user_fraction: expected a value in [0, 1], found {}", options.train_user_fraction);
  }
}

// The `rank`-th smallest time of all anchors, rank from 0: a histogram finds the bucket, then only that
// bucket's times are held.
std::int64_t time_at_rank(const Dataset& dataset, std::int64_t min_history, const AnchorSurvey& survey,
                          std::int64_t rank) {
  const std::int64_t width = (survey.time_max - survey.time_min) / kBuckets + 1;
  const auto bucket_of = [&](std::int64_t time) {
    return static_cast<std::size_t>((time - survey.time_min) / width);
  };
  std::array<std::int64_t, kBuckets> histogram{};
  std::mutex mutex;
  parallel_users(dataset, kBlocks, [&](std::int64_t, std::int64_t first, std::int64_t end) {
    std::vector<std::int64_t> local(kBuckets);
    for (std::int64_t u = first; u < end; ++u) {
      visit_anchors(dataset, min_history, u, [&](std::int64_t, std::int64_t t) { ++local[bucket_of(t)]; });
    }
    const std::scoped_lock lock(mutex);
    for (std::size_t b = 0; b < local.size(); ++b) histogram[b] += local[b];
  });
  std::size_t bucket = 0;
  for (; rank >= histogram[bucket]; ++bucket) rank -= histogram[bucket];

  std::vector<std::int64_t> times;
  parallel_users(dataset, kBlocks, [&](std::int64_t, std::int64_t first, std::int64_t end) {
    std::vector<std::int64_t> local;
    for (std::int64_t u = first; u < end; ++u) {
      visit_anchors(dataset, min_history, u, [&](std::int64_t, std::int64_t t) {
        if (bucket_of(t) == bucket) local.push_back(t);
      });
    }
    const std::scoped_lock lock(mutex);
    times.insert(times.end(), local.begin(), local.end());
  });
  std::nth_element(times.begin(), times.begin() + rank, times.end());
  return times[static_cast<std::size_t>(rank)];
}

// The half-open times of held-out windows.
void hold_out_windows(const AnchorSurvey& survey, const HoldoutOptions& options, Holdout& holdout) {
  const std::int64_t windows = survey.windows();
  const bool last = options.first_window == -1;
  const std::int64_t first = last ? windows - options.windows : options.first_window;
  if (first < 1 || first >= windows) {
    fail_usage(
        "hold-out windows: the anchors span {} windows of {} s; holding out {} leaves no window on one side; "
        "hold out fewer, or set a smaller window_seconds",
        windows, survey.window_seconds,
        last ? fmt::format("the last {}", options.windows) : fmt::format("from window {} on", first));
  }
  const std::int64_t end = last || options.windows == 0 ? windows : first + options.windows;
  holdout.time_begin = survey.time_min + first * survey.window_seconds;
  if (end < windows) holdout.time_end = survey.time_min + end * survey.window_seconds;
}

}  // namespace

Holdout resolve_holdout(const Dataset& dataset, std::int64_t min_history, const AnchorSurvey& survey,
                        const HoldoutOptions& options) {
  check_options(options);
  Holdout holdout;
  holdout.train_user_fraction = options.train_user_fraction;
  holdout.split_salt = options.split_salt;
  if (options.windows != 0 || options.first_window != -1) hold_out_windows(survey, options, holdout);
  if (options.fraction != 0) {
    const double wanted = options.fraction * static_cast<double>(survey.count);
    const auto evaluation = std::clamp<std::int64_t>(std::llround(wanted), 1, survey.count);
    holdout.time_begin = time_at_rank(dataset, min_history, survey, survey.count - evaluation);
  }
  if (options.seconds != 0) holdout.time_begin = survey.time_max - options.seconds + 1;
  return holdout;
}

}  // namespace hstu
