#include "hstu/step/dense_sums.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <numeric>
#include <utility>

#include <gtest/gtest.h>

#include "comm/tcp_ranks.h"
#include "hstu/base/random.h"
#include "hstu/comm/thread_group.h"

namespace hstu {
namespace {

constexpr std::int64_t kBucketBytes[] = {1, 3000, 1 << 30};

// As a model has them: also empty ones, at the end too.
ParameterSet parameters() {
  ParameterSet set(1, DType::f32);
  for (const std::int64_t size : {300, 0, 7, 64, 1000, 1, 2000, 65, 0})
    set.add("p" + std::to_string(set.all().size()), {size}, Initializer::zeros());
  set.move_to(host_context());
  return set;
}

// The gradients of a rank, whose sum depends on the order.
void fill(const ParameterSet& set, int rank) {
  RandomStream random{derive_key(5, std::to_string(rank))};
  for (Parameter* p : set.all())
    for (std::int64_t i = 0; i < p->gradient.size(); ++i)
      p->gradient.mutable_data<float>()[i] =
          static_cast<float>(random.normal() * (rank % 2 == 0 ? 1e6 : 1e-3));
}

std::vector<float> values(const Tensor& tensor) {
  return {tensor.data<float>(), tensor.data<float>() + tensor.size()};
}

TEST(GradientBuckets, HaveEveryParameterOnceFromTheLastToTheFirst) {
  const ParameterSet set = parameters();
  const NamedTensors all = set.all();
  for (const std::int64_t bytes : kBucketBytes) {
    const std::vector<GradientBucket> buckets = gradient_buckets(set, bytes);
    std::int64_t end = set.gradients().size();
    std::size_t next = all.size();
    for (std::size_t b = 0; b < buckets.size(); ++b) {
      EXPECT_EQ(buckets[b].end, end);
      end = buckets[b].begin;
      for (const Parameter* p : buckets[b].parameters) {
        ASSERT_EQ(p, all[--next]);
        const std::int64_t at = p->gradient.data<float>() - set.gradients().data<float>();
        EXPECT_GE(at, buckets[b].begin);
        EXPECT_LE(at + p->gradient.size(), buckets[b].end);
      }
      if (b + 1 < buckets.size()) {
        EXPECT_GE((buckets[b].end - buckets[b].begin) * 4, bytes);
      }
    }
    EXPECT_EQ(end, 0);
    EXPECT_EQ(next, 0u);
  }
  EXPECT_GT(gradient_buckets(set, 1).size(), 5u);
  EXPECT_EQ(gradient_buckets(set, 3000).size(), 3u);
  EXPECT_EQ(gradient_buckets(set, 1 << 30).size(), 1u);
}

// The trap: a size of no meaning makes one exchange at the end of the backward pass, with the same sums.
TEST(GradientBuckets, OfTheDefaultSizeAreSeveral) {
  ParameterSet set(1, DType::f32);
  for (const char* name : {"a", "b", "c"}) set.add(name, {DenseSums::kBucketBytes / 4}, Initializer::zeros());
  set.move_to(host_context());
  EXPECT_EQ(gradient_buckets(set, DenseSums::kBucketBytes).size(), 3u);
}

void sleep_a_little(RandomStream& random) {
  if (const std::uint64_t us = random.below(400); us < 200)
    std::this_thread::sleep_for(std::chrono::microseconds(us));
}

// Ranks complete their gradients in orders of their own, at times of their own, and some never.
void expect_sums(int ranks, const std::function<void(const std::function<void(Communicator&)>&)>& run_group) {
  const ParameterSet one = parameters();
  std::vector<float> expected(static_cast<std::size_t>(one.gradients().size()), 0);
  for (int rank = 0; rank < ranks; ++rank) {
    fill(one, rank);
    const std::vector<float> terms = values(one.gradients());
    for (std::size_t i = 0; i < terms.size(); ++i)
      expected[i] = rank == 0 ? terms[i] : expected[i] + terms[i];
  }
  std::atomic<int> right = 0;
  run_group([&](Communicator& comm) {
    RandomStream random{derive_key(6, std::to_string(comm.rank()))};
    const ParameterSet set = parameters();
    ExchangeQueue queue(comm);
    bool all_right = true;
    for (int round = 0; round < 20; ++round) {
      for (const std::int64_t bytes : kBucketBytes) {
        fill(set, comm.rank());
        DenseSums sums(set, {comm, nullptr, &queue}, {}, {}, bytes);
        NamedTensors order = set.all();
        for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
        for (const Parameter* p : order) {
          sleep_a_little(random);
          if (random.below(8) > 0) sums.begin(*p);
        }
        sums.finish();
        all_right = all_right && values(set.gradients()) == expected;
        // Nothing of the exchange is left: the next collective is the same one on all ranks.
        const std::int64_t mine = comm.activity().collectives;
        for (const std::int64_t theirs : comm.all_gather(std::span(&mine, 1)))
          all_right = all_right && theirs == mine;
      }
    }
    right += all_right ? 1 : 0;
  });
  EXPECT_EQ(right, ranks);
}

TEST(DenseSums, HaveTheOrderOfRanksWhateverTheDelaysAndOrdersOfRanks) {
  for (const int ranks : {1, 2, 3, 4, 7}) {
    expect_sums(ranks, [&](const auto& body) { run_ranks(ranks, body); });
    expect_sums(ranks, [&](const auto& body) { run_tcp_ranks(ranks, body); });
  }
}

TEST(DenseSums, EndWithoutAnExchangeAfterAnError) {
  std::atomic<int> right = 0;
  run_ranks(3, [&](Communicator& comm) {
    const ParameterSet set = parameters();
    fill(set, comm.rank());
    const std::vector<float> before = values(set.gradients());
    {
      ExchangeQueue queue(comm);
      DenseSums sums(set, {comm, nullptr, &queue}, {}, {}, 1);
      sums.begin(*set.all()[2]);      // alone in its bucket, which is complete and waits for those before it
      sums.begin(*set.all().back());  // one of two in the first bucket
    }
    const Activity& activity = comm.activity();
    if (activity.collectives == 0 && activity.stage == "start" && values(set.gradients()) == before) ++right;
    comm.barrier();
  });
  EXPECT_EQ(right, 3);
}

TEST(DenseSums, ThrowWhatTheExchangeThrew) {
  std::atomic<int> told = 0;
  const auto run = [&] {
    run_ranks(3, [&](Communicator& comm) {
      if (comm.rank() == 1) fail("rank 1 broke");
      const ParameterSet set = parameters();
      ExchangeQueue queue(comm);
      DenseSums sums(set, {comm, nullptr, &queue}, {}, {}, 1);
      try {
        sums.finish();
      } catch (const Error&) {
        ++told;
        throw;
      }
    });
  };
  EXPECT_THROW(run(), Error);
  EXPECT_EQ(told, 2);
}

TEST(DenseSums, RefuseAGradientThatIsFinalTwice) {
  run_ranks(2, [](Communicator& comm) {
    const ParameterSet set = parameters();
    ExchangeQueue queue(comm);
    DenseSums sums(set, {comm, nullptr, &queue}, {}, {}, 1 << 30);
    sums.begin(*set.all().front());
    EXPECT_THROW(sums.begin(*set.all().front()), InternalError);
  });
}

}  // namespace
}  // namespace hstu
