// Ranks and first items over a catalogue in blocks and over ranks, and the tally of an evaluation.
#include "hstu/objective/catalogue_ranks.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/base/error.h"
#include "hstu/base/random.h"
#include "hstu/comm/thread_group.h"
#include "hstu/objective/retrieval_measures.h"
#include "hstu/objective/retrieval_tally.h"

namespace hstu {
namespace {

using testing::HasSubstr;
using Ids = std::vector<std::int64_t>;
using Lists = std::vector<std::vector<kernels::ScoredItem>>;
using Ranks = std::vector<CatalogueRank>;

// Ranks without the excluded items.
Ids unseen(const Ranks& ranks) {
  Ids found;
  for (const CatalogueRank& rank : ranks) found.push_back(rank.unseen);
  return found;
}

constexpr std::int64_t kRankWidth = 37, kRankItems = 70, kRankQueries = 9;

// Items with ids that are no index, many of which have equal rows.
struct SmallCatalogue {
  Ids ids;
  std::vector<float> rows;

  SmallCatalogue() {
    RandomStream random{7};
    for (std::int64_t i = 0; i < kRankItems; ++i) {
      ids.push_back(10 + 3 * i);
      for (std::int64_t e = 0; e < kRankWidth; ++e)
        rows.push_back(i % 4 == 0 ? 1.0F : static_cast<float>(random.normal()));
    }
  }
  // Every `ranks`-th item from `rank` on.
  SmallCatalogue part(int rank, int ranks) const {
    SmallCatalogue part;
    part.ids.clear();
    part.rows.clear();
    for (std::int64_t i = rank; i < kRankItems; i += ranks) {
      part.ids.push_back(ids[static_cast<std::size_t>(i)]);
      part.rows.insert(part.rows.end(), rows.begin() + i * kRankWidth, rows.begin() + (i + 1) * kRankWidth);
    }
    return part;
  }
  CatalogueScores scores(std::int64_t block, bool unit = true) const {
    CatalogueScores scores;
    scores.unit = unit;
    scores.block_rows = block;
    scores.rows = {.size = std::ssize(ids),
                   .width = kRankWidth,
                   .ids = ids.data(),
                   .device_ids = {},
                   .read =
                       [this](std::int64_t first, Tensor& to) {
                         std::copy_n(rows.data() + first * kRankWidth, to.size(), to.mutable_data<float>());
                       },
                   .gradient = {}};
    return scores;
  }
};

CatalogueQueryList rank_queries() {
  RandomStream random{9};
  CatalogueQueryList queries;
  queries.excluded_offsets = {0};
  for (std::int64_t q = 0; q < kRankQueries; ++q) {
    for (std::int64_t e = 0; e < kRankWidth; ++e)
      queries.vectors.push_back(q % 3 == 0 ? 0.5F : static_cast<float>(random.normal()));
    for (std::int64_t i = 0; i < q; ++i) queries.excluded.push_back(10 + 6 * i);
    queries.excluded_offsets.push_back(std::ssize(queries.excluded));
  }
  return queries;
}

Ids rank_targets() {
  Ids targets;
  for (std::int64_t q = 0; q < kRankQueries; ++q) targets.push_back(10 + 3 * (kRankItems - 1 - 5 * q));
  return targets;
}

TEST(CatalogueRanks, AreTheSameInBlocksOfAnySizeAndOnAnyNumberOfRanks) {
  const SmallCatalogue all;
  const Ranks ranks = catalogue_ranks(all.scores(1000), rank_queries(), rank_targets(), one_rank());
  const Lists top = catalogue_top(all.scores(1000), rank_queries(), 20, one_rank());
  EXPECT_EQ(top[8].size(), 20U);
  for (const std::int64_t block : {1, 7}) {
    EXPECT_EQ(catalogue_ranks(all.scores(block), rank_queries(), rank_targets(), one_rank()), ranks);
    EXPECT_EQ(catalogue_top(all.scores(block), rank_queries(), 20, one_rank()), top);
  }
  for (const int n : {2, 3, 4, 90}) {  // more ranks than items
    run_ranks(n, [&](Communicator& comm) {
      const SmallCatalogue mine = all.part(comm.rank(), comm.size());
      const Ranks found = catalogue_ranks(mine.scores(4), rank_queries(), rank_targets(), comm);
      const Lists first = catalogue_top(mine.scores(4), rank_queries(), 20, comm);
      EXPECT_EQ(found, ranks);
      EXPECT_EQ(first, top);
    });
  }
}

// Reading and packing a catalogue costs as much as comparing it with hundreds of queries.
TEST(CatalogueRanks, SeveralListsReadAKeptCatalogueOnce) {
  const SmallCatalogue all;
  CatalogueScores scores = all.scores(8);
  int reads = 0;
  scores.rows.read = [&reads, read = scores.rows.read](std::int64_t first, Tensor& to) {
    ++reads;
    read(first, to);
  };
  const Lists expected = catalogue_top(scores, rank_queries(), 20, one_rank());
  const int blocks = std::exchange(reads, 0);
  ASSERT_GT(blocks, 1);
  CatalogueBlocks kept(scores, kKeptCatalogueBytes);
  for (int call = 0; call < 3; ++call)
    EXPECT_EQ(catalogue_top(kept, rank_queries(), 20, one_rank()), expected) << call;
  EXPECT_EQ(reads, blocks);
}

// Rows and vectors of few small integers, so that products are exact and most of them are equal.
TEST(CatalogueRanks, AreThoseOfASortInTenThousandCases) {
  constexpr std::int64_t kWidth = 3, kQueries = 25;
  RandomStream random{3};
  const auto small = [&] { return static_cast<float>(random.below(3)) - 1; };
  for (int c = 0; c < 400; ++c) {
    SmallCatalogue all;
    all.ids.clear(), all.rows.clear();
    const auto items = static_cast<std::int64_t>(1 + random.below(30));
    for (std::int64_t i = 0; i < items; ++i) {
      all.ids.push_back(7 * i + static_cast<std::int64_t>(random.below(7)));
      for (std::int64_t e = 0; e < kWidth; ++e) all.rows.push_back(small());
    }
    CatalogueScores scores = all.scores(8, false);
    scores.rows.width = kWidth;
    scores.rows.read = [&](std::int64_t first, Tensor& to) {
      std::copy_n(all.rows.data() + first * kWidth, to.size(), to.mutable_data<float>());
    };
    CatalogueQueryList queries{.vectors = {}, .excluded_offsets = {0}, .excluded = {}};
    Ids targets, expected;
    for (std::int64_t q = 0; q < kQueries; ++q) {
      for (std::int64_t e = 0; e < kWidth; ++e) queries.vectors.push_back(small());
      const auto target = static_cast<std::size_t>(random.below(static_cast<std::uint64_t>(items)));
      targets.push_back(all.ids[target]);
      std::vector<std::pair<float, std::int64_t>> order;
      for (std::size_t i = 0; i < all.ids.size(); ++i) {
        if (i != target && random.below(4) == 0) {
          queries.excluded.push_back(all.ids[i]);
          continue;
        }
        float score = 0;
        for (std::size_t e = 0; e < kWidth; ++e)
          score += all.rows[i * kWidth + e] * queries.vectors[queries.vectors.size() - kWidth + e];
        order.emplace_back(-score, all.ids[i]);
      }
      queries.excluded_offsets.push_back(std::ssize(queries.excluded));
      std::sort(order.begin(), order.end());
      const auto place = std::find_if(order.begin(), order.end(),
                                      [&](const auto& item) { return item.second == targets.back(); });
      expected.push_back(place - order.begin() + 1);
    }
    ASSERT_EQ(unseen(catalogue_ranks(scores, queries, targets, one_rank())), expected) << c;
  }
}

// The two answers agree: the item at a target's rank in the list is the target.
TEST(CatalogueRanks, AreThePlacesInTheListOfAllItems) {
  const SmallCatalogue all;
  const Ids ranks = unseen(catalogue_ranks(all.scores(8), rank_queries(), rank_targets(), one_rank()));
  const Lists top = catalogue_top(all.scores(8), rank_queries(), kRankItems, one_rank());
  const CatalogueQueryList queries = rank_queries();
  for (std::size_t q = 0; q < ranks.size(); ++q) {
    const auto begin = queries.excluded.begin() + queries.excluded_offsets[q];
    const auto end = queries.excluded.begin() + queries.excluded_offsets[q + 1];
    if (std::find(begin, end, rank_targets()[q]) != end) continue;  // an excluded target is in no list
    EXPECT_EQ(top[q][static_cast<std::size_t>(ranks[q] - 1)].id, rank_targets()[q]);
  }
}

TEST(CatalogueRanks, CompareUnitVectorsOrRawRows) {
  SmallCatalogue two;
  two.ids = {1, 2};
  two.rows.assign(2 * kRankWidth, 0);
  two.rows[0] = 10;
  two.rows[kRankWidth] = 0.1F;
  CatalogueQueryList query;
  query.vectors.assign(kRankWidth, 0);
  query.vectors[0] = 0.6F;
  query.vectors[1] = 0.8F;
  EXPECT_EQ(unseen(catalogue_ranks(two.scores(9, false), query, {2}, one_rank())), Ids{2});
  two.rows[kRankWidth + 1] = 0.1F;
  EXPECT_EQ(unseen(catalogue_ranks(two.scores(9, true), query, {2}, one_rank())), Ids{1});
  EXPECT_EQ(unseen(catalogue_ranks(two.scores(9, false), query, {2}, one_rank())), Ids{2});
}

TEST(CatalogueRanks, ATargetThatTheCatalogueHasNotHasNoRank) {
  const SmallCatalogue all;
  CatalogueQueryList query;
  query.vectors.assign(kRankWidth, 1);
  query.excluded_offsets = {0, 2};
  query.excluded = {10, 11};  // 11 is no item
  EXPECT_EQ(catalogue_ranks(all.scores(8), query, {12}, one_rank()), Ranks{CatalogueRank()});
}

TEST(CatalogueRanks, AnItemThatIsNotFiniteStopsEveryRank) {
  SmallCatalogue all;
  all.rows[3 * kRankWidth + 1] = std::nanf("");
  run_ranks(2, [&](Communicator& comm) {
    const SmallCatalogue mine = all.part(comm.rank(), comm.size());
    for (const bool unit : {true, false}) {
      try {
        catalogue_ranks(mine.scores(4, unit), rank_queries(), rank_targets(), comm);
        ADD_FAILURE() << "expected an error";
      } catch (const NotFiniteError& error) {
        EXPECT_THAT(error.what(), HasSubstr("item 19"));
      }
    }
  });
}

// Rows of a global batch as `ranks` ranks have them: a rank has every `ranks`-th row.
RetrievalQuestions questions_of_rank(int rank, int ranks) {
  const CatalogueQueryList queries = rank_queries();
  RetrievalQuestions asked;
  asked.seen_offsets = {0};
  for (std::int64_t r = rank; r < kRankQueries; r += ranks) {
    const auto q = static_cast<std::size_t>(r);
    asked.user.push_back(100 + r);
    asked.position.push_back(1000 + r);
    asked.target.push_back(rank_targets()[q]);
    asked.tied.push_back(r % 2 == 0 ? 1 : 0);
    asked.has_row.push_back(1);
    if (ranks > 1) asked.place.push_back(r);
    for (std::int64_t i = queries.excluded_offsets[q + 1] - 1; i >= queries.excluded_offsets[q]; --i)
      asked.seen.insert(asked.seen.end(), 2, queries.excluded[static_cast<std::size_t>(i)]);
    asked.seen_offsets.push_back(std::ssize(asked.seen));
  }
  return asked;
}

Tensor vectors_of_rank(int rank, int ranks) {
  const std::vector<float> all = rank_queries().vectors;
  std::vector<float> mine;
  for (std::int64_t r = rank; r < kRankQueries; r += ranks)
    mine.insert(mine.end(), all.begin() + r * kRankWidth, all.begin() + (r + 1) * kRankWidth);
  return Tensor::from<float>({std::ssize(mine) / kRankWidth, kRankWidth}, mine);
}

TEST(RetrievalTally, HasTheSameRanksInTheSameOrderForAnyNumberOfRanks) {
  const SmallCatalogue all;
  const Ranks expected = catalogue_ranks(all.scores(1000), rank_queries(), rank_targets(), one_rank());
  for (const int n : {1, 2, 4, 11}) {
    run_ranks(n, [&](Communicator& comm) {
      const SmallCatalogue mine = all.part(comm.rank(), comm.size());
      RetrievalTally tally(mine.scores(16),
                           [&](const Batch&) { return questions_of_rank(comm.rank(), comm.size()); });
      const Batch batch;
      tally.add(batch, vectors_of_rank(comm.rank(), comm.size()), Stream());
      EXPECT_EQ(tally.examples(), 0);
      EXPECT_EQ(tally.settle(Stream(), comm), "");
      EXPECT_EQ(tally.examples(), kRankQueries);
      Ranks ranks;
      for (const TargetRank& rank : tally.ranked().rank) ranks.push_back({rank.unseen.first, rank.all.first});
      EXPECT_EQ(ranks, expected);
      EXPECT_EQ(tally.ranked().target, rank_targets());
      EXPECT_EQ(tally.ranked().user.back(), 100 + kRankQueries - 1);
      EXPECT_EQ(tally.ranked().tied[1], 0);
      EXPECT_EQ(tally.settle(Stream(), comm), "");  // a batch without a part of any rank
      EXPECT_EQ(tally.examples(), kRankQueries);
    });
  }
}

TEST(CatalogueBlocks, AreReadOnceIfTheWholeCatalogueIsKept) {
  const SmallCatalogue all;
  const Ranks expected = catalogue_ranks(all.scores(1000), rank_queries(), rank_targets(), one_rank());
  CatalogueScores counted = all.scores(16);
  std::int64_t reads = 0;
  counted.rows.read = [&reads, read = counted.rows.read](std::int64_t first, Tensor& to) {
    ++reads;
    read(first, to);
  };
  constexpr std::int64_t kBytes = kRankItems * kRankWidth * 4, kBlocks = 5;
  for (const std::int64_t kept : {kBytes, kBytes - 1}) {
    CatalogueBlocks blocks(counted, kept);
    reads = 0;
    for (int batch = 0; batch < 2; ++batch)
      EXPECT_EQ(catalogue_ranks(blocks, rank_queries(), rank_targets(), one_rank()), expected);
    EXPECT_EQ(reads, kept == kBytes ? kBlocks : 4 * kBlocks) << "twice for a batch";
  }
  counted.context = make_context(Device::host());
  counted.block_rows = 64;
  RetrievalTally tally(counted, [](const Batch&) { return questions_of_rank(0, 1); });
  reads = 0;
  for (int batch = 0; batch < 2; ++batch) {
    tally.add(Batch(), vectors_of_rank(0, 1), Stream());
    EXPECT_EQ(tally.settle(Stream(), one_rank()), "");
  }
  EXPECT_EQ(reads, 2) << "of an evaluation";
  EXPECT_NEAR(counted.context.memory->figures().in_use, kept_bytes(kRankItems, kRankWidth, true), 4 * 256);
}

TEST(RetrievalTally, AVectorThatIsNotFiniteIsNamedOnAllRanksAndAddsNothing) {
  const SmallCatalogue all;
  run_ranks(2, [&](Communicator& comm) {
    const SmallCatalogue mine = all.part(comm.rank(), comm.size());
    RetrievalTally tally(mine.scores(16),
                         [&](const Batch&) { return questions_of_rank(comm.rank(), comm.size()); });
    Tensor vectors = vectors_of_rank(comm.rank(), comm.size());
    if (comm.rank() == 1) vectors.mutable_data<float>()[kRankWidth] = std::nanf("");
    const Batch batch;
    tally.add(batch, vectors, Stream());
    EXPECT_THAT(tally.settle(Stream(), comm), HasSubstr("user 103 at event 1003"));
    EXPECT_EQ(tally.examples(), 0);
  });
}

// A sample without a history has no vector, and a target may be no item of the catalogue.
TEST(RetrievalTally, KeepsSamplesThatTheModelCannotAnswer) {
  const SmallCatalogue all;
  for (const int n : {1, 2}) {
    run_ranks(n, [&](Communicator& comm) {
      const SmallCatalogue mine = all.part(comm.rank(), comm.size());
      RetrievalTally tally(mine.scores(16), [&](const Batch&) {
        RetrievalQuestions asked = questions_of_rank(comm.rank(), comm.size());
        if (comm.rank() + 1 < comm.size()) return asked;
        asked.user.insert(asked.user.begin(), 7);
        asked.position.insert(asked.position.begin(), 70);
        asked.target.insert(asked.target.begin(), 10);
        asked.tied.insert(asked.tied.begin(), 0);
        asked.has_row.insert(asked.has_row.begin(), 0);
        if (comm.size() > 1) asked.place.insert(asked.place.begin(), -1);
        asked.seen_offsets.insert(asked.seen_offsets.begin(), 0);
        asked.target[1] = 12;
        return asked;
      });
      tally.add(Batch(), vectors_of_rank(comm.rank(), comm.size()), Stream());
      EXPECT_EQ(tally.settle(Stream(), comm), "");
      const RankedTargets& ranked = tally.ranked();
      ASSERT_EQ(tally.examples(), kRankQueries + 1);
      EXPECT_EQ(ranked.user.front(), 7);
      EXPECT_EQ(ranked.rank.front().why, Unanswered::no_history);
      const std::size_t unknown = comm.size() == 1 ? 1 : 2;
      EXPECT_EQ(ranked.target[unknown], 12);
      EXPECT_EQ(ranked.rank[unknown].why, Unanswered::new_item);
      EXPECT_EQ(ranked.rank[unknown].all.first, kUnranked);
      EvaluationResult result;
      measure_retrieval(ranked, SeenItems::none, {}, result);
      EXPECT_EQ(result.model.count("n"), kRankQueries + 1);
      EXPECT_EQ(result.unanswered, (std::map<std::string, std::int64_t>{{"new_item", 1}, {"no_history", 1}}));
    });
  }
}

}  // namespace
}  // namespace hstu
