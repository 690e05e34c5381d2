#include "hstu/events/event_stages.h"

#include <utility>

#include "hstu/events/count_filter.h"
#include "hstu/events/duplicate_filter.h"
#include "hstu/events/tie_order.h"

namespace hstu {

template <typename Stage, typename... Arguments>
Stage* EventStages::put_before(Arguments&&... arguments) {
  auto stage = std::make_unique<Stage>(std::forward<Arguments>(arguments)..., *first_);
  Stage* const place = stage.get();
  first_ = place;
  stages_.push_back(std::move(stage));
  return place;
}

EventStages::EventStages(const Schema& schema, const Path& scratch, std::int64_t memory, EventSink& last)
    : rules_(schema.filters), first_(&last) {
  if (schema.times == Times::kOrder) put_before<OrderTimes>();
  if (schema.ties == TieRule::kShuffle) put_before<TieShuffle>(schema.ties_seed);
  if (rules_.counts()) counts_ = put_before<CountFilter>(rules_, scratch / "filter.spill", memory);
  if (rules_.duplicates != Duplicates::kKeep) duplicates_ = put_before<DuplicateFilter>(rules_, memory);
}

EventStages::~EventStages() = default;

void EventStages::finish() {
  for (std::size_t s = stages_.size(); s-- > 0;) stages_[s]->finish();
}

std::optional<FilterReport> EventStages::report() const {
  if (!rules_.active()) return std::nullopt;
  FilterReport report;
  report.rules = rules_;
  if (duplicates_ != nullptr) report.duplicates = duplicates_->duplicates();
  if (counts_ != nullptr) counts_->report(report);
  return report;
}

}  // namespace hstu
