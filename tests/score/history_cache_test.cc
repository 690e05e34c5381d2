// Answers with a cache of histories beside those without one, to the bit.
#include <algorithm>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "hstu/base/random.h"
#include "hstu/device/device.h"
#include "hstu/score/request_queue.h"
#include "score/score_fixture.h"

namespace hstu::testing {
namespace {

// Bytes of 32 tokens: keys and values of 8 floats in 2 layers.
constexpr std::int64_t kPage = 32 * 2 * 2 * 8 * 4;

struct CachedForm {
  std::string name;
  void (*configure)(RunOptions& options);
};

// Users whose histories grow, are corrected, and are asked for as they were earlier.
class ChangingHistories {
 public:
  explicit ChangingHistories(std::uint64_t seed) : random_{seed}, users_(6) {}

  ScoreRequest next(bool ranks, std::size_t columns) {
    const std::size_t user = random_.below(users_.size());
    RequestEvents& events = users_[user];
    change(events);
    ScoreRequest request;
    request.user = static_cast<std::int64_t>(user);
    request.events = events;
    request.context.assign(columns, 1);
    request.events->context.assign(columns, std::vector<std::int64_t>(events.item.size(), 2));
    const std::int64_t end = events.time.empty() ? 1000 : events.time.back();
    // A request of before: without the last events.
    request.time =
        random_.below(4) == 0 ? end / 2 + 600 : end + 1 + static_cast<std::int64_t>(random_.below(3));
    request.asked = ranks ? Asked::scores : Asked::vectors;
    for (std::uint64_t i = 0, n = 1 + random_.below(5); ranks && i < n; ++i)
      request.items.push_back(static_cast<std::int64_t>(random_.below(12)));
    return request;
  }
  std::vector<ScoreRequest> several(int count, bool ranks, std::size_t columns) {
    std::vector<ScoreRequest> requests(static_cast<std::size_t>(count));
    for (ScoreRequest& request : requests) request = next(ranks, columns);
    return requests;
  }

 private:
  void change(RequestEvents& events) {
    if (!events.item.empty() && random_.below(5) == 0)
      events.item[random_.below(events.item.size())] = static_cast<std::int64_t>(random_.below(12));
    if (!events.time.empty() && random_.below(4) == 0)  // one of the last, which the events before may read
      events.time[events.time.size() - 1 - random_.below(std::min<std::size_t>(3, events.time.size()))] +=
          static_cast<std::int64_t>(random_.below(20'000));
    for (std::uint64_t i = 0, n = random_.below(9); i < n; ++i) {
      events.item.push_back(static_cast<std::int64_t>(random_.below(12)));
      events.time.push_back((events.time.empty() ? 1000 : events.time.back()) + 50);
      events.action.push_back(static_cast<std::uint8_t>(1 + random_.below(2)));
    }
    if (events.item.size() > 60) events = {};  // a new user
  }

  RandomStream random_;
  std::vector<RequestEvents> users_;
};

class CachedHistories : public Score, public ::testing::WithParamInterface<CachedForm> {
 protected:
  CachedHistories() {
    options_.data.options.history_length = 40;
    options_.training.batch_size = 8;
    GetParam().configure(options_);
    if (options_.model.kind().name == "retrieval")
      use_retrieval(retrieval_of(options_).preset);
    else
      use_ranking(200, {"positive"});
  }
};

// Each list of requests is asked for by a thread, one request after the other.
std::vector<std::vector<ScoreAnswer>> answers_of_threads(
    RequestQueue& queue, const std::vector<std::vector<ScoreRequest>>& requests) {
  std::vector<std::vector<ScoreAnswer>> found(requests.size());
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < requests.size(); ++t)
    threads.emplace_back([&, t] {
      for (const ScoreRequest& request : requests[t])
        found[t].push_back(std::move(queue.answer({request}).front()));
    });
  for (std::thread& thread : threads) thread.join();
  return found;
}

TEST_P(CachedHistories, ChangeNoBitOfAnAnswer) {
  train_and_export();
  const auto plain = open();
  // Ten pages of 32 tokens, for six users with up to 40 events.
  const auto cached = open(10 * kPage);
  const std::size_t columns = plain->form().columns();
  ASSERT_NE(cached->cache(), nullptr);
  ChangingHistories histories(5);
  for (int batch = 0; batch < 40; ++batch) {
    const std::vector<ScoreRequest> requests = histories.several(1 + batch % 4, plain->ranks(), columns);
    const std::vector<ScoreAnswer> expected = answers_of(*plain, requests),
                                   found = answers_of(*cached, requests);
    for (std::size_t i = 0; i < requests.size(); ++i) ASSERT_EQ(found[i].scores, expected[i].scores) << batch;
  }
  const HistoryCacheCounts& counts = cached->cache()->counts();
  EXPECT_GT(counts.known_events, 0);
  EXPECT_GT(counts.evicted, 0);
  EXPECT_LE(counts.bytes, counts.limit);
}

INSTANTIATE_TEST_SUITE_P(
    Forms, CachedHistories,
    ::testing::Values(
        CachedForm{"RankingAllEvents", [](RunOptions& o) { ranking_gr_of(o).candidates = 0; }},
        CachedForm{"RankingLastEvents", [](RunOptions& o) { ranking_gr_of(o).candidates = 3; }},
        CachedForm{"RankingWithoutActions",
                   [](RunOptions& o) {
                     ranking_gr_of(o).actions = false;
                     ranking_gr_of(o).candidates = 1;
                   }},
        CachedForm{"Meta", [](RunOptions& o) { retrieval_of(o).preset = SequencePreset::meta; }},
        CachedForm{"Nvidia", [](RunOptions& o) { retrieval_of(o).preset = SequencePreset::nvidia; }},
        CachedForm{"Sasrec", [](RunOptions& o) { retrieval_of(o).preset = SequencePreset::sasrec; }}),
    [](const auto& form) { return form.param.name; });

TEST_P(CachedHistories, OfABatchMayBeReadAfterTheNextWasBegun) {
  train_and_export();
  const auto plain = open(), cached = open(10 * kPage);
  ChangingHistories histories(6);
  for (int round = 0; round < 10; ++round) {
    const std::vector<ScoreRequest> first = histories.several(3, plain->ranks(), plain->form().columns()),
                                    second = histories.several(2, plain->ranks(), plain->form().columns());
    const auto begin = [&](const std::vector<ScoreRequest>& requests) {
      std::vector<const ScoreRequest*> all;
      all.reserve(requests.size());
      for (const ScoreRequest& request : requests) all.push_back(&request);
      return cached->begin(all);
    };
    RequestScorer::Begun of_first = begin(first), of_second = begin(second);
    const std::vector<ScoreAnswer> a = cached->finish(std::move(of_first)),
                                   b = cached->finish(std::move(of_second));
    const std::vector<ScoreAnswer> expected_a = answers_of(*plain, first),
                                   expected_b = answers_of(*plain, second);
    for (std::size_t i = 0; i < a.size(); ++i) ASSERT_EQ(a[i].scores, expected_a[i].scores) << round;
    for (std::size_t i = 0; i < b.size(); ++i) ASSERT_EQ(b[i].scores, expected_b[i].scores) << round;
  }
}

class SmallCache : public Score {};

TEST_F(SmallCache, ForgetsTheLeastRecentlyUsedHistories) {
  use_retrieval(SequencePreset::nvidia);
  train_and_export();
  const auto cached = open(2 * kPage);
  const auto ask = [&](std::int64_t user) {
    ScoreRequest request{.asked = Asked::vectors, .user = user, .events = RequestEvents()};
    request.events->item = {1, 2, 3}, request.events->time = {10, 20, 30}, request.events->action = {1, 1, 1};
    const std::int64_t before = cached->cache()->counts().known_events;
    answers_of(*cached, {request});
    return cached->cache()->counts().known_events - before;
  };
  EXPECT_EQ(ask(1), 0);
  EXPECT_EQ(ask(2), 0);
  EXPECT_EQ(ask(1), 2);  // all but the last event
  EXPECT_EQ(ask(3), 0);  // in place of user 2
  EXPECT_EQ(ask(1), 2);
  EXPECT_EQ(ask(2), 0);
  EXPECT_EQ(cached->cache()->counts().evicted, 2);
  EXPECT_THROW(open(kPage - 1), UsageError);
}

TEST_F(SmallCache, IsNoneForModelsWhoseTokensDependOnTheRequest) {
  train_and_export();  // DLRMv4: positions count from the end
  EXPECT_EQ(open(1 << 20)->cache(), nullptr);
}

TEST_F(SmallCache, AnswersManyThreadsAsOne) {
  use_ranking(200, {"positive"});
  train_and_export();
  const auto plain = open();
  std::vector<std::vector<ScoreRequest>> requests(6);
  std::vector<std::vector<ScoreAnswer>> expected;
  for (std::size_t t = 0; t < requests.size(); ++t) {
    ChangingHistories histories(t % 3);  // some threads ask for the same users at the same time
    requests[t] = histories.several(30, true, plain->form().columns());
    expected.push_back(answers_of(*plain, requests[t]));
  }
  RequestQueue queue(open(256 << 10), {.most = 16});
  const std::vector<std::vector<ScoreAnswer>> found = answers_of_threads(queue, requests);
  for (std::size_t t = 0; t < requests.size(); ++t)
    for (std::size_t i = 0; i < requests[t].size(); ++i)
      ASSERT_EQ(found[t][i].scores, expected[t][i].scores) << t << " " << i;
  EXPECT_GT(queue.counts().cache.known_events, 0);
}

TEST_F(SmallCache, AnswersAListInOneBatch) {
  use_ranking(200, {"positive"});
  train_and_export();
  RequestQueue queue(open(), {.most = 20});
  ChangingHistories histories(2);
  const std::size_t columns = queue.model()->form().columns();
  for (std::int64_t batch = 1; batch <= 5; ++batch) {
    queue.answer(histories.several(20, true, columns));
    EXPECT_EQ(queue.counts().batches, batch);
    EXPECT_EQ(queue.counts().requests, 20 * batch);
  }
}

TEST_F(SmallCache, RefusesWhatIsWrongOrTooMuchOfAList) {
  use_ranking(200, {"positive"});
  train_and_export();
  RequestQueue queue(open(), {.waiting = 3});
  ChangingHistories histories(2);
  std::vector<ScoreRequest> requests = histories.several(3, true, queue.model()->form().columns());
  EXPECT_EQ(queue.answer(requests).size(), 3);
  requests[1].items = {-1};
  requests[2].items.clear();
  EXPECT_THROW(queue.check(*queue.model(), requests[2]), UsageError);
  EXPECT_THROW(queue.answer(histories.several(4, true, queue.model()->form().columns())), QueueIsFull);
  EXPECT_GE(queue.counts().failed, 1);
}

// Requests of changing histories to a scorer on a GPU with a cache beside one without it, and the CPU form.
class CachedHistoriesOnGpu : public Score {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU";
    options_.data.options.history_length = 40;
    options_.training.batch_size = 8;
  }
  // `limit`: of the difference of two scores. Ten pages of 32 tokens, for six users with up to 40 events.
  HistoryCacheCounts expect_same_scores(std::int64_t page, std::int64_t behind, double limit) {
    train_and_export();
    const bool half = options_.precision == Precision::bf16;  // which the host does not compute
    const auto host = open(0, half ? "cuda" : "host"), plain = open(0, "cuda"),
               cached = open(10 * page, "cuda", behind);
    EXPECT_NE(cached->cache(), nullptr);
    if (cached->cache() == nullptr) return {};
    ChangingHistories histories(5);
    for (int batch = 0; batch < 60; ++batch) {
      const std::vector<ScoreRequest> requests =
          histories.several(1 + batch % 4, plain->ranks(), plain->form().columns());
      const std::vector<ScoreAnswer> exact = answers_of(*host, requests),
                                     expected = answers_of(*plain, requests),
                                     found = answers_of(*cached, requests);
      for (std::size_t i = 0; i < requests.size(); ++i) {
        EXPECT_EQ(found[i].scores.size(), expected[i].scores.size());
        for (std::size_t s = 0; s < found[i].scores.size(); ++s) {
          EXPECT_NEAR(found[i].scores[s], expected[i].scores[s], limit) << "batch " << batch;
          EXPECT_NEAR(found[i].scores[s], exact[i].scores[s], limit) << "batch " << batch;
        }
      }
    }
    const HistoryCacheCounts counts = cached->cache()->counts();
    EXPECT_GT(counts.known_events, 0);
    EXPECT_LE(counts.bytes, counts.limit);
    EXPECT_LE(counts.behind_bytes, counts.behind_limit);
    return counts;
  }
};

TEST_F(CachedHistoriesOnGpu, AreThoseOfNoCacheInFp32) {
  use_ranking(200, {"positive"}).candidates = 3;
  EXPECT_GT(expect_same_scores(kPage, 0, 2e-5).evicted, 0);
}

TEST_F(CachedHistoriesOnGpu, ComeBackFromTheHost) {
  use_ranking(200, {"positive"});
  const HistoryCacheCounts counts = expect_same_scores(kPage, 100 * kPage, 2e-5);
  EXPECT_GT(counts.fetched_events, 0);
  EXPECT_EQ(counts.evicted, 0);
}

TEST_F(CachedHistoriesOnGpu, LeaveTheHostToo) {
  use_ranking(200, {"positive"}).actions = false;
  const HistoryCacheCounts counts = expect_same_scores(kPage / 2, 3 * kPage, 2e-5);
  EXPECT_GT(counts.fetched_events, 0);
  EXPECT_GT(counts.evicted, 0);
}

// Heads that have tiles of queries. 2 layers of keys and values of 64 columns.
TEST_F(CachedHistoriesOnGpu, AreThoseOfNoCacheInBf16) {
  RankingGrConfig& model = use_ranking(200, {"positive"});
  model.embedding_dim = model.dim = 64, model.heads = 1, model.head_dim = 64, model.candidates = 3;
  options_.precision = Precision::bf16, options_.device = "cuda";
  constexpr std::int64_t kWide = 32 * 2 * 2 * 64 * 2;
  EXPECT_GT(expect_same_scores(kWide, 4 * kWide, 4e-3).fetched_events, 0);
}

TEST_F(CachedHistoriesOnGpu, OfRetrieval) {
  use_retrieval(SequencePreset::nvidia);
  EXPECT_GT(expect_same_scores(kPage, 0, 2e-5).evicted, 0);
}

TEST_F(CachedHistoriesOnGpu, OfSoftmaxBlocks) {
  use_retrieval(SequencePreset::sasrec);
  EXPECT_GT(expect_same_scores(kPage, 4 * kPage, 2e-5).fetched_events, 0);
}

// A page has the times of its tokens too.
constexpr std::int64_t kTimes = 32 * 2 * 2 * 8;

TEST_F(CachedHistoriesOnGpu, OfARelativeBias) {
  use_retrieval(SequencePreset::meta);
  EXPECT_GT(expect_same_scores(kPage + kTimes, 0, 2e-5).evicted, 0);
}

TEST_F(CachedHistoriesOnGpu, OfARelativeBiasComeBackFromTheHost) {
  use_retrieval(SequencePreset::meta);
  EXPECT_GT(expect_same_scores(kPage + kTimes, 4 * (kPage + kTimes), 2e-5).fetched_events, 0);
}

TEST_F(CachedHistoriesOnGpu, OfARelativeBiasInBf16) {
  use_retrieval(SequencePreset::meta);
  options_.precision = Precision::bf16, options_.device = "cuda";
  EXPECT_GT(expect_same_scores(kPage / 2 + kTimes, 0, 4e-3).evicted, 0);
}

TEST_F(CachedHistoriesOnGpu, AnswerManyThreads) {
  use_ranking(200, {"positive"});
  train_and_export();
  const auto plain = open(0, "cuda");
  std::vector<std::vector<ScoreRequest>> requests(6);
  std::vector<std::vector<ScoreAnswer>> expected;
  for (std::size_t t = 0; t < requests.size(); ++t) {
    ChangingHistories histories(t % 3);
    requests[t] = histories.several(30, true, plain->form().columns());
    expected.push_back(answers_of(*plain, requests[t]));
  }
  // Batches of one and of two are full: the next one is made while the GPU computes them.
  for (const std::int64_t most : {1, 2, 16}) {
    RequestQueue queue(open(8 * kPage, "cuda", 8 * kPage), {.most = most});
    const std::vector<std::vector<ScoreAnswer>> found = answers_of_threads(queue, requests);
    for (std::size_t t = 0; t < requests.size(); ++t)
      for (std::size_t i = 0; i < requests[t].size(); ++i)
        for (std::size_t s = 0; s < expected[t][i].scores.size(); ++s)
          ASSERT_NEAR(found[t][i].scores.at(s), expected[t][i].scores[s], 2e-5) << t << " " << i;
    EXPECT_GT(queue.counts().cache.known_events, 0);
    EXPECT_EQ(queue.counts().requests, 180);
  }
}

TEST_F(CachedHistoriesOnGpu, MayBeBegunBeforeTheBatchBeforeIsFinished) {
  use_ranking(200, {"positive"});
  train_and_export();
  const auto one_by_one = open(10 * kPage, "cuda", 4 * kPage),
             overlapped = open(10 * kPage, "cuda", 4 * kPage);
  ChangingHistories histories(9);
  std::vector<std::vector<ScoreRequest>> batches;
  std::vector<std::vector<ScoreAnswer>> expected;
  for (int batch = 0; batch < 40; ++batch) {
    batches.push_back(histories.several(1 + batch % 3, true, one_by_one->form().columns()));
    expected.push_back(answers_of(*one_by_one, batches.back()));
  }
  std::vector<std::vector<ScoreAnswer>> found;
  RequestScorer::Begun before;
  for (std::size_t batch = 0; batch < batches.size(); ++batch) {
    std::vector<const ScoreRequest*> all;
    for (const ScoreRequest& request : batches[batch]) all.push_back(&request);
    RequestScorer::Begun begun = overlapped->begin(all);
    if (batch > 0) found.push_back(overlapped->finish(std::move(before)));
    before = std::move(begun);
  }
  found.push_back(overlapped->finish(std::move(before)));
  for (std::size_t batch = 0; batch < batches.size(); ++batch)
    for (std::size_t i = 0; i < batches[batch].size(); ++i)
      ASSERT_EQ(found[batch][i].scores, expected[batch][i].scores) << batch;
}

}  // namespace
}  // namespace hstu::testing
