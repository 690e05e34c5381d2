#include "hstu/batching/anchors.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/base/text.h"

namespace hstu {
namespace {

// Appends the windows [first, last) of `list` to `clipped`, each with its anchors in [begin, end) seconds.
void clip(const Dataset& dataset, const AnchorIndex& index, const AnchorList& list, std::int64_t first,
          std::int64_t last, std::int64_t begin, std::int64_t end, AnchorList& clipped) {
  for (std::int64_t w = first; w < last; ++w) {
    const auto [first_time, last_time] = index.times[static_cast<std::size_t>(w)];
    if (begin <= first_time && last_time < end) {
      clipped.append(list, w);
    } else if (last_time < begin || first_time >= end) {
      clipped.append_empty();
    } else {
      std::vector<std::int64_t> positions;
      for (const std::int64_t p : list.window(w)) {
        const std::int64_t time = dataset.time()[dataset.checked(p)];
        if (time >= begin && time < end) positions.push_back(p);
      }
      clipped.append(std::move(positions));
    }
  }
}

// Those of the last anchors of each user that are scored, or the anchors before all of the last.
AnchorList split_users(const Dataset& dataset, const AnchorList& list, const Holdout& holdout, bool scored) {
  AnchorList chosen;
  for (std::int64_t w = 0; w < list.windows(); ++w) {
    std::vector<std::int64_t> positions;
    std::int64_t user = 0, end = 0;  // of its events in the segment
    for (const std::int64_t p : list.window(w)) {
      if (p >= end) {
        user = dataset.user_at(p);
        end = dataset.end_of_user_in_segment(p);
      }
      const std::int64_t time = dataset.time()[p];
      if (scored ? holdout.is_scored(user, p, time) : !holdout.is_last(user, p, time)) positions.push_back(p);
    }
    chosen.append(std::move(positions));
  }
  return chosen;
}

// Every stride-th position of each user in each window, counted back from the user's last; 0: only the last.
AnchorList thin(const Dataset& dataset, const AnchorList& list, std::int64_t stride) {
  AnchorList thinned;
  for (std::int64_t w = 0; w < list.windows(); ++w) {
    const AnchorList::Window window = list.window(w);
    std::vector<std::int64_t> positions;
    for (std::size_t begin = 0; begin < window.size();) {
      const std::int64_t last_event = dataset.end_of_user_in_segment(dataset.checked(window[begin]));
      const std::size_t end = static_cast<std::size_t>(
          std::lower_bound(window.begin() + static_cast<std::ptrdiff_t>(begin), window.end(), last_event) -
          window.begin());
      const std::size_t step = stride == 0 ? end - begin : static_cast<std::size_t>(stride);
      for (std::size_t i = begin + (end - 1 - begin) % step; i < end; i += step)
        positions.push_back(window[i]);
      begin = end;
    }
    thinned.append(std::move(positions));
  }
  return thinned;
}

void check_split(const Anchors& anchors, bool trains) {
  const Holdout& holdout = anchors.holdout;
  const bool wanted = holdout.in_time() || holdout.of_users() || holdout.of_last();
  if ((!trains || anchors.training.size() > 0) && (!wanted || anchors.evaluation.size() > 0)) return;
  fail_usage(
      "the hold-out leaves {} of {} samples for training and {} for evaluation (samples span {} s, held out "
      "from {}, train_user_fraction {}); change the hold-out or lower min_history",
      with_separators(anchors.training.size()), with_separators(anchors.count),
      with_separators(anchors.evaluation.size()), anchors.time_max - anchors.time_min + 1,
      holdout.in_time()   ? fmt::format("second {}", holdout.time_begin - anchors.time_min)
      : holdout.of_last() ? fmt::format("the last {} of each user", holdout.last)
                          : "no time",
      holdout.users.train_fraction);
}

}  // namespace

Anchors find_anchors(const Dataset& dataset, const DataOptions& options, const HoldoutOptions& holdout,
                     std::vector<std::size_t> stages, bool trains) {
  constexpr std::int64_t kAlways = std::numeric_limits<std::int64_t>::min();
  if (stages.empty()) stages.push_back(dataset.segments().size());
  if (stages.size() > 1 && (holdout.last > 0 || holdout.split != LastSplit::none)) {
    fail_usage(
        "evaluation.{}: the last samples of users change with every extension of {}, so that this run cannot "
        "go on. Begin one that holds out in time with what it has learnt: hstu train CONFIG --warm-start "
        "RUN, "
        "where CONFIG has evaluation.{} and evaluation.holdout_seconds = N (a day: 86400)",
        holdout.last > 0 ? fmt::format("holdout_last = {}", holdout.last)
                         : fmt::format("split = \"{}\"", word_of(kLastSplits, holdout.split)),
        dataset.folder().string(), holdout.last > 0 ? "holdout_last = 0" : "split = \"\"");
  }
  const AnchorRule rule{.min_history = options.min_history,
                        .window_seconds = options.window_seconds,
                        .users = {.train_fraction = holdout.train_user_fraction, .salt = holdout.split_salt}};
  Anchors anchors;
  AnchorIndex index;
  std::int64_t windows = 0, time_begin = kAlways;  // of the stages before
  for (const std::size_t segments : stages) {
    index = open_anchor_index(dataset, rule, segments);
    anchors.holdout = resolve_holdout(dataset, index, holdout);
    const std::int64_t before = anchors.training.windows(), end = anchors.holdout.time_begin;
    AnchorList released;
    if (end > time_begin) clip(dataset, index, index.training_users, 0, windows, time_begin, end, released);
    for (std::int64_t w = 0; w < released.windows(); ++w)
      if (!released.window(w).empty()) anchors.training.append(released, w);
    clip(dataset, index, index.training_users, windows, index.windows(), kAlways, end, anchors.training);
    anchors.stages.push_back(anchors.training.windows() - before);
    windows = index.windows();
    time_begin = end;
  }
  anchors.count = index.count();
  anchors.time_min = index.time_min;
  anchors.time_max = index.time_max;
  const Holdout& resolved = anchors.holdout;
  const AnchorList& held_out = resolved.of_users() ? index.held_out_users : index.training_users;
  const bool evaluates = resolved.in_time() || resolved.of_users();
  clip(dataset, index, held_out, 0, index.windows(),
       evaluates && !resolved.in_time() ? kAlways : resolved.time_begin,
       evaluates ? resolved.time_end : kAlways, anchors.evaluation);
  if (resolved.of_last()) {
    anchors.evaluation = split_users(dataset, index.training_users, resolved, true);
    anchors.training = split_users(dataset, index.training_users, resolved, false);
  }
  if (options.anchor_stride != 1) anchors.training = thin(dataset, anchors.training, options.anchor_stride);
  check_split(anchors, trains);
  return anchors;
}

}  // namespace hstu
