#include "hstu/score/request_queue.h"

#include <mutex>
#include <semaphore>
#include <vector>

#include <gmock/gmock.h>

#include "score/score_fixture.h"

namespace hstu::testing {
namespace {

class Queue : public Score {
 protected:
  ScoreRequest request(std::size_t items) const {
    return {.asked = Asked::scores,
            .time = 25'500,
            .events = events_of(1),
            .items = std::vector<std::int64_t>(items, 3)};
  }
};

TEST_F(Queue, AnswersASmallRequestBetweenLargeOnes) {
  use_ranking(200, {"positive"});
  train_and_export();
  constexpr int kLarge = 6;
  std::vector<int> order;
  std::counting_semaphore<> answered(0);
  {
    const RequestQueue::Model model = open();
    RequestQueue queue(model, {});
    const auto submit = [&](int number, std::size_t items) {
      queue.submit(model, request(items), items > 1,
                   [&, number, items](const ScoreAnswer& answer, const std::exception_ptr& failure) {
                     EXPECT_EQ(failure, nullptr);
                     EXPECT_EQ(answer.scores.size(), items);
                     order.push_back(number);  // by the one thread that computes
                     answered.release();
                   });
    };
    for (int i = 0; i < kLarge; ++i) submit(i, 40'000);
    submit(kLarge, 1);
    for (int i = 0; i <= kLarge; ++i) answered.acquire();
  }
  EXPECT_NE(order.back(), kLarge);
  std::erase(order, kLarge);
  EXPECT_TRUE(std::ranges::is_sorted(order));
}

TEST_F(Queue, PartsOfARequestHaveTheAnswerOfTheWhole) {
  use_ranking(200, {"positive", "negative"});
  train_and_export();
  const RequestQueue::Model model = open();
  RequestQueue queue(model, {});
  ScoreRequest large = request(0);
  for (std::int64_t i = 0; i < 3 * model->most_items() / 2; ++i) large.items.push_back(i % 37);
  for (const Asked asked : {Asked::scores, Asked::top}) {
    large.asked = asked;
    large.top = asked == Asked::top ? 1000 : 0;
    large.task = asked == Asked::top ? 1 : 0;
    const ScoreRequest* const one = &large;
    const ScoreAnswer whole = model->answer({&one, 1}).front(), parts = queue.answer({large}).front();
    EXPECT_EQ(parts.scores, whole.scores);
    EXPECT_EQ(parts.items, whole.items);
    EXPECT_EQ(parts.has_history, whole.has_history);
    EXPECT_FALSE(parts.scores.empty());
  }
  EXPECT_EQ(queue.counts().requests, 2);
  EXPECT_EQ(queue.counts().waiting, 0);
}

// An answer that its owner cannot take is lost; the thread goes on.
TEST_F(Queue, OutlivesAnOwnerThatThrows) {
  use_ranking(200, {"positive"});
  train_and_export();
  const RequestQueue::Model model = open();
  RequestQueue queue(model, {});
  queue.submit(model, request(1), false,
               [](const ScoreAnswer&, const std::exception_ptr&) { throw std::bad_alloc(); });
  EXPECT_EQ(queue.answer({request(2)}).front().scores.size(), 2U);
}

}  // namespace
}  // namespace hstu::testing
