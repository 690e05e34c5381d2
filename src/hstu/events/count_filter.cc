#include "hstu/events/count_filter.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "hstu/base/contains.h"
#include "hstu/base/error.h"
#include "hstu/base/progress.h"

namespace hstu {

CountFilter::CountFilter(const EventFilters& rules, Path spill, std::int64_t memory, EventSink& next)
    : EventStage(next), rules_(rules), spill_(std::move(spill)), items_(memory) {
  writer_.emplace(spill_);
}

CountFilter::~CountFilter() {
  std::error_code ignored;
  std::filesystem::remove(spill_, ignored);
}

void CountFilter::append(EventTable events) {
  events_ += events.size();
  if (events.size() > 0) writer_->append(std::move(events));
}

// Calls look(user, item) for every event, where users count from 0, and end(user, events) after its last one.
template <typename Look, typename End>
void CountFilter::for_rows(const Look& look, const End& end) const {
  RunReader reader(spill_, RunReader::AtEnd::keep);
  Progress progress("counting users and items", events_, "events");
  std::int64_t id = -1, done = 0, of_user = 0;
  std::size_t user = std::numeric_limits<std::size_t>::max();  // before the first
  EventTable events;
  while (reader.next(events)) {
    const std::vector<std::int64_t> users = events.user.integers(), items = events.item.integers();
    for (std::size_t r = 0; r < users.size(); ++r) {
      if (users[r] != id) {
        if (id != -1) end(user, of_user);
        id = users[r];
        ++user;
        of_user = 0;
      }
      of_user += look(user, items[r]) ? 1 : 0;
    }
    progress.advance_to(done += events.size());
  }
  if (id != -1) end(user, of_user);
}

void CountFilter::drop_long_users() {
  for_rows([](std::size_t, std::int64_t) { return true; },
           [&](std::size_t, std::int64_t events) {
             const bool stays = rules_.longest_user == 0 || events <= rules_.longest_user;
             users_.push_back(stays);
             if (stays) return;
             ++longest_.users;
             longest_.events += events;
           });
}

// One round: users and items are compared with the counts of those that were left before it. False if none
// left.
bool CountFilter::narrow_core() {
  bool changed = false;
  std::vector<bool> stay = users_;
  for_rows(
      [&](std::size_t user, std::int64_t item) {
        if (!users_[user]) return false;
        ItemTable::Entry& entry = items_.at(item);
        if (entry.in_core == 0) return false;
        if (entry.count < std::numeric_limits<std::uint32_t>::max()) ++entry.count;
        return true;
      },
      [&](std::size_t user, std::int64_t events) {
        if (!users_[user] || events >= rules_.core) return;
        stay[user] = false;
        changed = true;
        ++core_.users;
      });
  for (ItemTable::Entry& entry : items_.entries()) {
    if (entry.id == -1 || entry.in_core == 0) continue;
    if (entry.count < rules_.core) {
      entry.in_core = 0;
      changed = true;
      ++core_.items;
    }
    entry.count = 0;
  }
  users_ = std::move(stay);
  ++rounds_;
  return changed;
}

// Users whose number of events is below the limit; without one, users that have none.
void CountFilter::drop_short_users() {
  const std::int64_t least = std::max<std::int64_t>(rules_.shortest_user, 1);
  std::int64_t kept = 0;
  for_rows(
      [&](std::size_t user, std::int64_t item) {
        return users_[user] && (rules_.core == 0 || items_.at(item).in_core != 0);
      },
      [&](std::size_t user, std::int64_t events) {
        kept += events;
        if (!users_[user] || events >= least) return;
        users_[user] = false;
        if (events == 0) {
          ++core_.users;
        } else {
          ++shortest_.users;
          shortest_.events += events;
        }
      });
  core_.events = events_ - longest_.events - kept;
}

void CountFilter::emit() {
  RunReader reader(spill_);
  std::int64_t id = -1;
  std::size_t user = std::numeric_limits<std::size_t>::max();
  EventTable events;
  std::vector<std::uint8_t> mask;
  while (reader.next(events)) {
    const std::vector<std::int64_t> users = events.user.integers(), items = events.item.integers();
    mask.assign(users.size(), 0);
    for (std::size_t r = 0; r < users.size(); ++r) {
      if (users[r] != id) ++user;
      id = users[r];
      mask[r] = users_[user] && (rules_.core == 0 || items_.at(items[r]).in_core != 0) ? 1 : 0;
    }
    events.keep(mask);
    pass_on(std::exchange(events, EventTable()));
  }
}

void CountFilter::finish() {
  writer_->close();
  writer_.reset();
  drop_long_users();
  if (rules_.core > 0) {
    while (narrow_core() && !rules_.core_once) continue;
  }
  drop_short_users();
  if (events_ > 0 && !contains(users_, true)) {
    fail_usage(
        "no event is left: of {} events, longest_user = {} left out {}, core = {} {}, and shortest_user = {} "
        "{}: change these limits",
        events_, rules_.longest_user, longest_.events, rules_.core, core_.events, rules_.shortest_user,
        shortest_.events);
  }
  emit();
}

void CountFilter::report(FilterReport& report) const {
  report.longest = longest_;
  report.core = core_;
  report.shortest = shortest_;
  report.core_rounds = rounds_;
}

}  // namespace hstu
