#include "hstu/batching/training_items.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <mutex>
#include <numeric>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/base/floor_divide.h"
#include "hstu/batching/features.h"
#include "hstu/batching/id_counts.h"
#include "hstu/batching/training_positives.h"

namespace hstu {
namespace {

constexpr std::int64_t kBlockEvents = std::int64_t{1} << 18;

std::int32_t day_of(std::int64_t time) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  return static_cast<std::int32_t>(std::clamp(floor_divide(time, kSecondsPerDay), -kMost, kMost));
}

}  // namespace

TrainingItems::TrainingItems(const Dataset& dataset, const Holdout& holdout, bool by_day) {
  count(dataset, holdout);
  if (items_.empty()) {
    fail_usage(
        "negatives are drawn from the items of positives, and the training part of {} has no event with the "
        "label {}: look at \"label\" and \"rankable\" of the schema, or hold out less",
        dataset.folder().string(), dataset.manifest().label);
  }
  if (by_day) add_days(dataset, holdout);
}

void TrainingItems::count(const Dataset& dataset, const Holdout& holdout) {
  std::mutex mutex;
  IdCounts counts;
  parallel_user_blocks(user_blocks(dataset, kBlockEvents), [&](std::int64_t first, std::int64_t end) {
    IdCounts of_block;
    for (std::int64_t u = first; u < end; ++u)
      each_training_positive(dataset, holdout, u, [&](std::int64_t p) { of_block.add(dataset.item()[p]); });
    const std::scoped_lock lock(mutex);
    counts.add(of_block);
  });
  auto [ids, times] = counts.sorted();
  items_ = std::move(ids);
  std::partial_sum(times.begin(), times.end(), std::back_inserter(ends_));
}

void TrainingItems::add_days(const Dataset& dataset, const Holdout& holdout) {
  std::mutex mutex;
  parallel_user_blocks(user_blocks(dataset, kBlockEvents), [&](std::int64_t first, std::int64_t end) {
    std::vector<OfDay> added;
    for (std::int64_t u = first; u < end; ++u) {
      each_training_positive(dataset, holdout, u, [&](std::int64_t p) {
        const auto found = std::lower_bound(items_.begin(), items_.end(), dataset.item()[p]);
        added.push_back({day_of(dataset.time()[p]), static_cast<std::uint32_t>(found - items_.begin())});
      });
    }
    const std::scoped_lock lock(mutex);
    days_.insert(days_.end(), added.begin(), added.end());
  });
  std::sort(days_.begin(), days_.end());
}

std::int64_t TrainingItems::positives_of(std::int64_t item) const {
  const auto found = std::lower_bound(items_.begin(), items_.end(), item);
  if (found == items_.end() || *found != item) return 0;
  const auto i = static_cast<std::size_t>(found - items_.begin());
  return ends_[i] - (i == 0 ? 0 : ends_[i - 1]);
}

std::int64_t TrainingItems::item_of(std::int64_t positive) const {
  const auto found = std::upper_bound(ends_.begin(), ends_.end(), positive);
  return items_[static_cast<std::size_t>(found - ends_.begin())];
}

TrainingItems::Range TrainingItems::of_day(std::int64_t time) const {
  require(!days_.empty(), "the training items have no days");
  const auto begin_of = [&](std::int32_t day) {
    return std::lower_bound(days_.begin(), days_.end(), OfDay{day, 0});
  };
  const std::int32_t wanted = day_of(time);
  auto after = std::upper_bound(days_.begin(), days_.end(), wanted,
                                [](std::int32_t day, const OfDay& of_day) { return day < of_day.day; });
  if (after == days_.begin()) {
    after = std::upper_bound(days_.begin(), days_.end(), days_.front().day,
                             [](std::int32_t day, const OfDay& of_day) { return day < of_day.day; });
  }
  return {begin_of((after - 1)->day) - days_.begin(), after - days_.begin()};
}

std::int64_t TrainingItems::day_item(std::int64_t number) const {
  return items_[days_[static_cast<std::size_t>(number)].item];
}

}  // namespace hstu
