#include "hstu/training/trained_samples.h"

#include <tuple>
#include <unordered_map>

#include "hstu/base/random.h"
#include "hstu/experiment/experiment.h"

namespace hstu {
namespace {

using Identity = std::tuple<std::int64_t, std::int64_t, std::int64_t>;  // user, item, time

struct HashOfIdentity {
  std::size_t operator()(const Identity& identity) const {
    const auto& [user, item, time] = identity;
    return mix64(mix64(mix64(static_cast<std::uint64_t>(user)) ^ static_cast<std::uint64_t>(item)) ^
                 static_cast<std::uint64_t>(time));
  }
};

Identity identity_of(const Dataset& dataset, std::int64_t position) {
  return {dataset.user_ids()[static_cast<std::size_t>(dataset.user_at(position))], dataset.item()[position],
          dataset.time()[position]};
}

}  // namespace

std::vector<std::uint8_t> trained_samples(const RunOptions& options, const TaskData& own, BatchCursor next,
                                          const Dataset& other, std::span<const std::int64_t> positions) {
  std::unordered_map<Identity, bool, HashOfIdentity> wanted;
  for (const std::int64_t position : positions) wanted.try_emplace(identity_of(other, position), false);
  BatchSchedule schedule = training_schedule(options, own.anchors, {});
  const std::optional<BatchCursor> end = training_schedule(options, own.anchors, next).upcoming();
  while (schedule.upcoming() != end) {
    const std::optional<BatchJob> job = schedule.next();
    if (job->cursor.epoch > 0) continue;  // the same samples again
    for (const std::int64_t position : job->positions)
      if (const auto found = wanted.find(identity_of(own.dataset, position)); found != wanted.end())
        found->second = true;
  }
  std::vector<std::uint8_t> trained;
  trained.reserve(positions.size());
  for (const std::int64_t position : positions)
    trained.push_back(wanted.at(identity_of(other, position)) ? 1 : 0);
  return trained;
}

}  // namespace hstu
