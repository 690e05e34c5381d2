#include "hstu/batching/anchors.h"

#include <array>
#include <limits>
#include <mutex>

#include "hstu/base/error.h"
#include "hstu/base/text.h"

namespace hstu {
namespace {

constexpr std::int64_t kMaxWindows = 1 << 20;
constexpr std::int64_t kBlocks = 64;
constexpr std::int64_t kMaxCounters = 1 << 22;  // blocks * windows

void check_chronology(const Dataset& dataset, std::int64_t user) {
  const auto offsets = dataset.user_offsets().subspan(static_cast<std::size_t>(user), 2);
  const MappedColumn& time = dataset.time();
  for (std::int64_t p = offsets[0] + 1; p < offsets[1]; ++p) {
    if (time[p - 1] <= time[p]) continue;
    fail("{}: the events of user {} are not in the order of time (position {}): prepare the dataset again",
         (dataset.folder() / kTimestampFile).string(), dataset.user_ids()[static_cast<std::size_t>(user)], p);
  }
}

// Counts anchors and finds their times; the one walk that also proves that histories are in order of time.
AnchorSurvey survey_anchors(const Dataset& dataset, const DataOptions& options) {
  AnchorSurvey survey{.count = 0,
                      .time_min = std::numeric_limits<std::int64_t>::max(),
                      .time_max = std::numeric_limits<std::int64_t>::min(),
                      .window_seconds = options.window_seconds};
  std::mutex mutex;
  parallel_users(dataset, kBlocks, [&](std::int64_t, std::int64_t first, std::int64_t end) {
    AnchorSurvey local = survey;
    local.count = 0;
    for (std::int64_t u = first; u < end; ++u) {
      check_chronology(dataset, u);
      visit_anchors(dataset, options.min_history, u, [&](std::int64_t, std::int64_t time) {
        ++local.count;
        local.time_min = std::min(local.time_min, time);
        local.time_max = std::max(local.time_max, time);
      });
    }
    const std::scoped_lock lock(mutex);
    survey.count += local.count;
    survey.time_min = std::min(survey.time_min, local.time_min);
    survey.time_max = std::max(survey.time_max, local.time_max);
  });
  return survey;
}

void check_survey(const Dataset& dataset, const DataOptions& options, const AnchorSurvey& survey) {
  if (survey.count == 0) {
    fail_usage(
        "min_history = {} leaves no sample: the dataset {} has {} events ({} of them rankable) of {} users, "
        "and no rankable event has that many earlier events of its user; lower min_history or prepare more "
        "events",
        options.min_history, dataset.folder().string(), with_separators(dataset.events()),
        with_separators(dataset.manifest().counts.rankable), with_separators(dataset.users()));
  }
  if (survey.windows() > kMaxWindows) {
    fail_usage("window_seconds = {} cuts {} seconds into {} windows, more than {}; raise window_seconds",
               options.window_seconds, survey.time_max - survey.time_min + 1, survey.windows(), kMaxWindows);
  }
}

enum Role : std::size_t { kTraining, kEvaluation, kRoles };

// Calls visit(role, window, position) for every anchor of [first, end) users that has a role.
template <typename Visit>
void visit_roles(const Dataset& dataset, std::int64_t min_history, const AnchorSurvey& survey,
                 const Holdout& holdout, std::int64_t first, std::int64_t end, const Visit& visit) {
  for (std::int64_t u = first; u < end; ++u) {
    const bool held_out = holdout.holds_out(dataset.user_ids()[static_cast<std::size_t>(u)]);
    visit_anchors(dataset, min_history, u, [&](std::int64_t position, std::int64_t time) {
      const auto window = static_cast<std::size_t>(survey.window_of(time));
      if (holdout.trains(held_out, time)) visit(kTraining, window, position);
      if (holdout.evaluates(held_out, time)) visit(kEvaluation, window, position);
    });
  }
}

// Counting sort by (role, window), stable in position: count per block of users, sum, write.
void sort_anchors(const Dataset& dataset, std::int64_t min_history, const AnchorSurvey& survey,
                  Anchors& anchors) {
  const auto windows = static_cast<std::size_t>(survey.windows());
  const std::int64_t blocks = std::clamp<std::int64_t>(kMaxCounters / survey.windows(), 1, kBlocks);
  using Counters = std::array<std::vector<std::int64_t>, kRoles>;
  std::vector<Counters> next(static_cast<std::size_t>(blocks));
  for (Counters& counters : next) counters.fill(std::vector<std::int64_t>(windows));

  parallel_users(dataset, blocks, [&](std::int64_t block, std::int64_t first, std::int64_t end) {
    Counters& counters = next[static_cast<std::size_t>(block)];
    visit_roles(dataset, min_history, survey, anchors.holdout, first, end,
                [&](Role role, std::size_t window, std::int64_t) { ++counters[role][window]; });
  });

  const std::array<AnchorList*, kRoles> lists{&anchors.training, &anchors.evaluation};
  for (const Role role : {kTraining, kEvaluation}) {
    AnchorList& list = *lists[role];
    list.offsets.assign(windows + 1, 0);
    std::int64_t total = 0;
    for (std::size_t w = 0; w < windows; ++w) {
      for (Counters& counters : next) total += std::exchange(counters[role][w], total);
      list.offsets[w + 1] = total;
    }
    list.positions.resize(static_cast<std::size_t>(total));
  }

  parallel_users(dataset, blocks, [&](std::int64_t block, std::int64_t first, std::int64_t end) {
    Counters& counters = next[static_cast<std::size_t>(block)];
    visit_roles(dataset, min_history, survey, anchors.holdout, first, end,
                [&](Role role, std::size_t window, std::int64_t position) {
                  lists[role]->positions[static_cast<std::size_t>(counters[role][window]++)] = position;
                });
  });
}

void check_split(const Anchors& anchors) {
  const bool wanted = anchors.holdout.in_time() || anchors.holdout.of_users();
  if (anchors.training.size() > 0 && (!wanted || anchors.evaluation.size() > 0)) return;
  fail_usage(
      "the hold-out leaves {} of {} samples for training and {} for evaluation (samples span {} s, held out "
      "from {}, train_user_fraction {}); change the hold-out or lower min_history",
      with_separators(anchors.training.size()), with_separators(anchors.count),
      with_separators(anchors.evaluation.size()), anchors.time_max - anchors.time_min + 1,
      anchors.holdout.in_time() ? fmt::format("second {}", anchors.holdout.time_begin - anchors.time_min)
                                : "no time",
      anchors.holdout.train_user_fraction);
}

}  // namespace

Anchors find_anchors(const Dataset& dataset, const DataOptions& options, const HoldoutOptions& holdout) {
  if (options.min_history < 0) {
    fail_usage("min_history: expected at least 0, found {}", options.min_history);
  }
  if (options.window_seconds < 0) {
    fail_usage("window_seconds: expected at least 0 (0 is one window), found {}", options.window_seconds);
  }
  const AnchorSurvey survey = survey_anchors(dataset, options);
  check_survey(dataset, options, survey);
  Anchors anchors{.count = survey.count,
                  .time_min = survey.time_min,
                  .time_max = survey.time_max,
                  .window_seconds = survey.window_seconds,
                  .holdout = resolve_holdout(dataset, options.min_history, survey, holdout),
                  .training = {},
                  .evaluation = {}};
  sort_anchors(dataset, options.min_history, survey, anchors);
  check_split(anchors);
  return anchors;
}

}  // namespace hstu
