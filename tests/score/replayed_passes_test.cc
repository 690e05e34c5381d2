// Requests of the sizes of earlier ones on a GPU, whose launches are replayed, beside those of a new scorer.
#include <vector>

#include <gtest/gtest.h>

#include "hstu/device/device.h"
#include "score/score_fixture.h"

namespace hstu::testing {
namespace {

class ReplayedRequests : public Score {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU";
  }
  static ScoreRequest request_of(RequestScorer& scorer, std::int64_t user) {
    ScoreRequest request{.asked = scorer.ranks() ? Asked::scores : Asked::vectors, .user = user, .time = 100};
    request.context.assign(scorer.form().columns(), 1);
    request.events.emplace();
    for (std::int64_t i = 0; i < 9; ++i) {
      request.events->item.push_back((user + 3 * i) % 12);
      request.events->time.push_back(10 + i);
      request.events->action.push_back(1);
    }
    request.events->context.assign(request.context.size(), std::vector<std::int64_t>(9, 2));
    if (scorer.ranks()) request.items = {(user + 5) % 12, (user + 7) % 12};
    return request;
  }
  static std::vector<float> answer_of(RequestScorer& scorer, std::int64_t user) {
    return answer_of(scorer, request_of(scorer, user));
  }
  static std::vector<float> answer_of(RequestScorer& scorer, const ScoreRequest& request) {
    scorer.check(request);
    const ScoreRequest* const one = &request;
    return scorer.answer({&one, 1}).front().scores;
  }
  void expect_same_bits() {
    train_and_export();
    constexpr std::int64_t kUsers = 4;
    std::vector<std::vector<float>> expected;
    for (std::int64_t user = 0; user < kUsers; ++user) expected.push_back(answer_of(*open(0, "cuda"), user));
    const auto replays = open(0, "cuda");
    for (std::int64_t i = 0; i < 3 * kUsers; ++i)
      EXPECT_EQ(answer_of(*replays, i % kUsers), expected[static_cast<std::size_t>(i % kUsers)]) << i;
    EXPECT_GE(replays->pass().replays(), kUsers);
  }
};

TEST_F(ReplayedRequests, OfDlrmv4HaveTheBitsOfTheFirst) {
  expect_same_bits();
}

TEST_F(ReplayedRequests, OfRankingGrHaveTheBitsOfTheFirst) {
  use_ranking(200, {"positive"});
  expect_same_bits();
}

TEST_F(ReplayedRequests, MayHaveAnotherNumberOfItems) {
  use_ranking(200, {"positive"});
  train_and_export();
  const auto replays = open(0, "cuda");
  std::vector<ScoreRequest> requests(2, request_of(*replays, 1));
  requests[1].items[1] = requests[1].items[0];
  std::vector<std::vector<float>> expected;
  for (const ScoreRequest& request : requests) expected.push_back(answer_of(*open(0, "cuda"), request));
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(answer_of(*replays, requests[i % 2]), expected[i % 2]) << i;
  EXPECT_EQ(replays->pass().replays(), 4);  // the first converts the weights, the second makes room
}

TEST_F(ReplayedRequests, OfRetrievalHaveTheBitsOfTheFirst) {
  use_retrieval(SequencePreset::meta);
  expect_same_bits();
}

}  // namespace
}  // namespace hstu::testing
