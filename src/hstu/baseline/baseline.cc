#include "hstu/baseline/baseline.h"

#include <cmath>

#include "hstu/base/error.h"
#include "hstu/baseline/running_counts.h"
#include "hstu/dataset/user_blocks.h"

namespace hstu {
namespace {

constexpr std::int64_t kBlockEvents = std::int64_t{1} << 18;
constexpr std::int64_t kEveryone = 0;  // the only key of the global rate

double logit(double p) {
  return std::log(p) - std::log1p(-p);
}

double smoothed_rate(const RateCounts& counts, double prior, double global) {
  return (static_cast<double>(counts.positives) + prior * global) /
         (static_cast<double>(counts.events) + prior);
}

}  // namespace

BaselineScores score_baseline(const Dataset& dataset, const Holdout& holdout,
                              std::span<const std::int64_t> positions) {
  std::vector<std::int64_t> users, items, times;
  for (const std::int64_t p : positions) {
    users.push_back(dataset.user_at(p));
    items.push_back(dataset.item()[p]);
    times.push_back(dataset.time()[p]);
  }
  RunningCounts by_user(users, times), by_item(items, times);
  RunningCounts of_all(std::vector<std::int64_t>(positions.size(), kEveryone), times);

  const std::uint8_t label_bit = dataset.manifest().label_bit();
  parallel_user_blocks(user_blocks(dataset, kBlockEvents), [&](std::int64_t first, std::int64_t end) {
    for (std::int64_t u = first; u < end; ++u) {
      const bool held_out = holdout.users.holds_out(dataset.user_ids()[static_cast<std::size_t>(u)]);
      RunningCounts::Run user_run(by_user, u), global_run(of_all, kEveryone);
      dataset.events_of(u).each([&](std::int64_t p) {
        const std::uint8_t action = dataset.action()[static_cast<std::size_t>(p)];
        const std::int64_t time = dataset.time()[p];
        if ((action & kRankableBit) == 0 || !holdout.trains(u, held_out, p, time)) return;
        const bool positive = (action & label_bit) != 0;
        user_run.add(time, positive);
        global_run.add(time, positive);
        by_item.add(dataset.item()[p], time, positive);
      });
    }
  });

  const auto user_counts = by_user.answers(), item_counts = by_item.answers(), counts = of_all.answers();
  BaselineScores scores;
  for (std::size_t i = 0; i < positions.size(); ++i) {
    const double global =
        (static_cast<double>(counts[i].positives) + 1) / (static_cast<double>(counts[i].events) + 2);
    const double item = logit(smoothed_rate(item_counts[i], kItemPrior, global));
    const double user = logit(smoothed_rate(user_counts[i], kUserPrior, global));
    scores.score.push_back(item + user);
    scores.probability.push_back(1 / (1 + std::exp(logit(global) - item - user)));
  }
  return scores;
}

}  // namespace hstu
