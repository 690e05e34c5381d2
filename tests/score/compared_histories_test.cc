// How many of a request's events are known to a cache of histories.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "score/score_fixture.h"

namespace hstu::testing {
namespace {

// A history of one user after another, and how many of its events are known.
class KnownOfUser {
 public:
  KnownOfUser(std::unique_ptr<RequestScorer> plain, std::unique_ptr<RequestScorer> cached)
      : plain_(std::move(plain)), cached_(std::move(cached)) {}

  static constexpr std::int64_t kEvents = 30;
  ScoreRequest request(std::int64_t user) const {
    ScoreRequest request{.user = user, .time = 10'000, .events = RequestEvents(), .items = {3, 5}};
    request.context.assign(plain_->form().columns(), 1);
    RequestEvents& events = *request.events;
    for (std::int64_t i = 0; i < kEvents; ++i) {
      events.item.push_back((user + i) % 12), events.time.push_back(1000 + 50 * i);
      events.action.push_back(static_cast<std::uint8_t>(1 + i % 2));
    }
    events.context.assign(request.context.size(), std::vector<std::int64_t>(events.item.size(), 2));
    return request;
  }
  // Expects the scores of no cache.
  std::int64_t ask(const ScoreRequest& request) {
    const std::int64_t before = cached_->cache()->counts().known_events;
    EXPECT_EQ(answers_of(*cached_, {request}).front().scores, answers_of(*plain_, {request}).front().scores);
    return cached_->cache()->counts().known_events - before;
  }

 private:
  std::unique_ptr<RequestScorer> plain_, cached_;
};

class ComparedHistories : public Score {
 protected:
  ComparedHistories() {
    options_.data.options.history_length = 40;
    use_ranking(200, {"positive"});
  }
};

TEST_F(ComparedHistories, AreKnownUpToTheFirstDifference) {
  train_and_export();
  KnownOfUser known(open(), open(1 << 20));
  constexpr std::int64_t kEvents = KnownOfUser::kEvents;
  std::int64_t user = 0;
  for (const std::int64_t place : {std::int64_t{0}, std::int64_t{1}, kEvents / 2, kEvents - 1}) {
    const auto i = static_cast<std::size_t>(place);
    for (int column = 0; column < 3; ++column) {
      ScoreRequest request = known.request(++user);
      EXPECT_EQ(known.ask(request), 0);
      EXPECT_EQ(known.ask(request), kEvents);
      if (column == 0) request.events->item[i] = (request.events->item[i] + 1) % 12;
      if (column == 1) request.events->time[i] += 1;
      if (column == 2) request.events->action[i] ^= 3;
      EXPECT_EQ(known.ask(request), place) << column;
      EXPECT_EQ(known.ask(request), kEvents) << column;
    }
  }
}

TEST_F(ComparedHistories, MayGrowOrEndEarlier) {
  train_and_export();
  KnownOfUser known(open(), open(1 << 20));
  constexpr std::int64_t kEvents = KnownOfUser::kEvents;
  ScoreRequest request = known.request(1);
  EXPECT_EQ(known.ask(request), 0);
  ScoreRequest earlier = request;
  earlier.time = request.events->time[7];
  EXPECT_EQ(known.ask(earlier), 7);
  EXPECT_EQ(known.ask(request), kEvents);  // which the earlier request has not shortened
  RequestEvents& events = *request.events;
  for (int i = 0; i < 3; ++i) {
    events.item.push_back(2), events.time.push_back(events.time.back() + 1), events.action.push_back(1);
    for (auto& column : events.context) column.push_back(2);
  }
  EXPECT_EQ(known.ask(request), kEvents);
  EXPECT_EQ(known.ask(request), kEvents + 3);
  // The same events in another order of their rows.
  std::ranges::reverse(events.item), std::ranges::reverse(events.time), std::ranges::reverse(events.action);
  EXPECT_EQ(known.ask(request), kEvents + 3);
  // Without its first event.
  events.item.pop_back(), events.time.pop_back(), events.action.pop_back();
  for (auto& column : events.context) column.pop_back();
  EXPECT_EQ(known.ask(request), 0);
}

// Each of a batch reads no more than what the others do not replace.
TEST_F(ComparedHistories, OfOneBatchMayBeOfTheSameUser) {
  train_and_export();
  const auto plain = open(), cached = open(1 << 20);
  const KnownOfUser known(open(), open());
  std::vector<ScoreRequest> requests;
  for (std::int64_t user = 0; user < 20; ++user) requests.push_back(known.request(user));
  for (int round = 0; round < 3; ++round) {
    for (std::size_t i = 0; i < requests.size(); i += 3)
      requests[i].events->item[i % 30] = (requests[i].events->item[i % 30] + 5) % 12;
    std::vector<ScoreRequest> twice = requests;
    twice.insert(twice.end(), requests.rbegin(), requests.rend());
    twice[20].events->item[3] = 11;
    const std::vector<ScoreAnswer> found = answers_of(*cached, twice), expected = answers_of(*plain, twice);
    for (std::size_t i = 0; i < twice.size(); ++i) ASSERT_EQ(found[i].scores, expected[i].scores) << i;
  }
  EXPECT_GT(cached->cache()->counts().known_events, 0);
}

}  // namespace
}  // namespace hstu::testing
