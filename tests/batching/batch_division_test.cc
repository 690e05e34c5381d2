#include "hstu/batching/batch_division.h"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "batching/small_data.h"
#include "hstu/batching/anchors.h"

namespace hstu {
namespace {

class BatchDivisionTest : public testing::Test {
 protected:
  static DataOptions options() {
    DataOptions options;
    options.history_length = 30;
    options.window_seconds = 0;
    return options;
  }
  std::int64_t tokens_of(std::span<const std::int64_t> positions) const {
    std::int64_t tokens = 0;
    for (const std::int64_t position : positions) tokens += builder_.most_tokens(position);
    return tokens;
  }

  const small::Data data_ = small::write(small::random_events(21, {.users = 20}));
  const Dataset dataset_{data_.folder};
  const SampleBuilder builder_{dataset_, options()};
  const std::vector<std::int64_t> batch_ = find_anchors(dataset_, options(), {}).training.first(50);
};

Division odd_and_even(std::span<const std::int64_t> tokens, int ranks) {
  Division division;
  division.parts.resize(static_cast<std::size_t>(ranks));
  for (std::size_t i = 0; i < tokens.size(); ++i)
    division.parts[i % division.parts.size()].push_back(static_cast<std::int32_t>(i));
  return division;
}

TEST_F(BatchDivisionTest, EverySampleIsOnOneRankInOnePieceAtItsPlace) {
  for (const int ranks : {1, 2, 3}) {
    for (const DivideSamples& divide : {DivideSamples(), DivideSamples(odd_and_even)}) {
      BatchDivision division(batch_, {.piece_samples = 21, .ranks = ranks, .divide = divide}, builder_);
      std::vector<std::int64_t> seen(batch_.size(), -1), sizes;
      while (const auto piece = division.next()) {
        ASSERT_EQ(piece->ranks.size(), static_cast<std::size_t>(ranks));
        sizes.push_back(0);
        for (const SamplesOfRank& of_rank : piece->ranks) {
          sizes.back() += std::ssize(of_rank.positions);
          EXPECT_TRUE(std::is_sorted(of_rank.places.begin(), of_rank.places.end()));
          ASSERT_EQ(of_rank.places.size(), of_rank.positions.size());
          for (std::size_t i = 0; i < of_rank.places.size(); ++i)
            seen[static_cast<std::size_t>(of_rank.places[i])] = of_rank.positions[i];
        }
      }
      EXPECT_EQ(seen, batch_) << ranks;
      EXPECT_EQ(sizes, (std::vector<std::int64_t>{21, 21, 8})) << ranks;
      EXPECT_FALSE(division.has_next());
    }
  }
}

TEST_F(BatchDivisionTest, ARankHasAsManyPartsAsTheOneThatNeedsMost) {
  constexpr std::int64_t kLimit = 60;
  BatchDivision division(batch_, {.part_tokens = kLimit, .ranks = 2}, builder_);
  const auto piece = division.next();
  ASSERT_TRUE(piece);
  std::vector<std::int64_t> parts;
  for (const SamplesOfRank& of_rank : piece->ranks) {
    parts.push_back(0);
    for (std::span<const std::int64_t> left = of_rank.positions; !left.empty(); ++parts.back()) {
      const auto part = first_part(builder_, left, kLimit);
      EXPECT_TRUE(part.size() == 1 || tokens_of(part) <= kLimit);
      if (part.size() < left.size()) {
        EXPECT_GT(tokens_of(left.first(part.size() + 1)), kLimit) << "too few";
      }
      left = left.subspan(part.size());
    }
  }
  EXPECT_EQ(piece->parts, *std::max_element(parts.begin(), parts.end()));
  EXPECT_GT(piece->parts, 1);
}

TEST_F(BatchDivisionTest, ABatchOfFewSamplesLeavesRanksWithoutAny) {
  BatchDivision division({batch_.data(), 1}, {.ranks = 3}, builder_);
  const auto piece = division.next();
  ASSERT_TRUE(piece);
  EXPECT_EQ(
      piece->ranks[0].positions.size() + piece->ranks[1].positions.size() + piece->ranks[2].positions.size(),
      1u);
  EXPECT_EQ(piece->parts, 1);
  EXPECT_FALSE(BatchDivision({}, {.ranks = 3}, builder_).next());
}

}  // namespace
}  // namespace hstu
