// Ranks and first items on a GPU: those of the host, to the bit of a score.
#include <algorithm>
#include <set>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/base/error.h"
#include "hstu/base/random.h"
#include "hstu/device/device.h"
#include "hstu/objective/catalogue_ranks.h"

namespace hstu::testing_ranks_gpu {
namespace {

using Ids = std::vector<std::int64_t>;

// Items and queries; numbers of few levels make many equal scores.
struct GpuCatalogue {
  std::int64_t items, width, queries;
  bool levels;
  std::int64_t longer = 0;  // so many items in the middle have rows three times as long
  Ids ids = {}, targets = {};
  std::vector<float> rows = {};
  CatalogueQueryList asked = {};

  void fill() {
    RandomStream random{11};
    const auto number = [&] {
      return levels ? static_cast<float>(random.below(3)) - 1 : static_cast<float>(random.normal());
    };
    for (std::int64_t i = 0; i < items; ++i) ids.push_back((std::int64_t{1} << 40) + 3 * i);
    for (std::int64_t i = 0; i < items * width; ++i)
      rows.push_back(number() * (std::abs(i / width - items / 2) < longer / 2 ? 3.0F : 1.0F));
    for (std::int64_t i = 0; i < queries * width; ++i) asked.vectors.push_back(number());
    asked.excluded_offsets.push_back(0);
    for (std::int64_t q = 0; q < queries; ++q) {
      // The last target is in no catalogue, and some are excluded.
      targets.push_back(q + 1 == queries ? 5 : id_of(random));
      std::set<std::int64_t> excluded{ids.front() - 1};
      for (std::int64_t i = 0; i < q % 7; ++i)
        excluded.insert(id_of(random) - static_cast<std::int64_t>(i % 2));
      if (q % 5 == 0) excluded.insert(targets.back());
      asked.excluded.insert(asked.excluded.end(), excluded.begin(), excluded.end());
      asked.excluded_offsets.push_back(std::ssize(asked.excluded));
    }
  }
  std::int64_t id_of(RandomStream& random) const {
    return ids[static_cast<std::size_t>(random.below(static_cast<std::uint64_t>(items)))];
  }
  CatalogueScores on(const Context& context, std::int64_t block, bool unit) const {
    const bool host = context.device().is_host();
    return {.rows = {.size = items,
                     .width = width,
                     .ids = ids.data(),
                     .device_ids = host ? Tensor() : Tensor::from<std::int64_t>({items}, ids).copy(context),
                     .read =
                         [this, context](std::int64_t first, Tensor& to) {
                           const std::vector<float> values(rows.begin() + first * width,
                                                           rows.begin() + (first + to.rows()) * width);
                           to.copy_from(Tensor::from<float>(to.shape(), values), context.stream);
                         },
                     .gradient = {}},
            .unit = unit,
            .context = context,
            .block_rows = block};
  }
};

class RanksOnGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU";
    gpu_ = make_context(Device::cuda(0));
  }
  Context gpu_;
};

TEST_F(RanksOnGpu, AreTheHostsInBlocksOfAnySize) {
  for (GpuCatalogue c : {GpuCatalogue{1, 1, 2, false}, GpuCatalogue{700, 37, 150, true},
                         GpuCatalogue{5000, 64, 260, false}, GpuCatalogue{900, 3, 40, true}}) {
    c.fill();
    SCOPED_TRACE(c.items);
    const CatalogueScores host = c.on(host_context(), 1000, false);
    const auto ranks = catalogue_ranks(host, c.asked, c.targets, one_rank());
    for (const std::int64_t block : {4096, 333}) {
      const CatalogueScores gpu = c.on(gpu_, block, false);
      EXPECT_EQ(catalogue_ranks(gpu, c.asked, c.targets, one_rank()), ranks) << block;
      for (const std::int64_t k : {std::int64_t{1}, std::int64_t{20}, std::int64_t{200}, std::int64_t{3000}})
        EXPECT_EQ(catalogue_top(gpu, c.asked, k, one_rank()), catalogue_top(host, c.asked, k, one_rank()))
            << block << ", first " << k;
    }
  }
}

// After the first items bfloat16 rules most of the others out. Of rows of three numbers of three levels so
// many have equal scores that candidates find no room, and of neighbours with longer rows those of a part do
// not; rows of 300 numbers are too wide for it.
TEST_F(RanksOnGpu, FindTheHostsItemsInLargeCatalogues) {
  for (GpuCatalogue c : {GpuCatalogue{40000, 64, 130, false}, GpuCatalogue{20000, 130, 30, false},
                         GpuCatalogue{30000, 3, 20, true}, GpuCatalogue{10000, 300, 5, false},
                         GpuCatalogue{40000, 30, 9, false, 3000}}) {
    c.fill();
    SCOPED_TRACE(::testing::Message() << c.items << " x " << c.width);
    const CatalogueScores host = c.on(host_context(), 8192, false);
    for (const std::int64_t k : {std::int64_t{1}, std::int64_t{200}}) {
      const auto expected = catalogue_top(host, c.asked, k, one_rank());
      for (const std::int64_t block : {65536, 7000})
        EXPECT_EQ(catalogue_top(c.on(gpu_, block, false), c.asked, k, one_rank()), expected)
            << block << ", first " << k;
      CatalogueBlocks kept(c.on(gpu_, 16000, false), std::int64_t{1} << 30);
      for (int round = 0; round < 2; ++round)
        EXPECT_EQ(catalogue_top(kept, c.asked, k, one_rank()), expected) << "kept, first " << k;
    }
  }
}

// The norms of items differ in their last bits, and no two scores are that close.
TEST_F(RanksOnGpu, AreTheHostsForItemsOfNormOne) {
  GpuCatalogue c{700, 37, 50, false};
  c.fill();
  const CatalogueScores host = c.on(host_context(), 1000, true), gpu = c.on(gpu_, 256, true);
  EXPECT_EQ(catalogue_ranks(gpu, c.asked, c.targets, one_rank()),
            catalogue_ranks(host, c.asked, c.targets, one_rank()));
  const std::vector<float> expected = catalogue_vectors(host), found = catalogue_vectors(gpu);
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-6);
}

TEST_F(RanksOnGpu, NameAnItemThatIsNotFinite) {
  GpuCatalogue c{700, 8, 5, false};
  c.fill();
  c.rows[8 * 600 + 3] = INFINITY;
  try {
    catalogue_ranks(c.on(gpu_, 256, true), c.asked, c.targets, one_rank());
    ADD_FAILURE() << "no error";
  } catch (const NotFiniteError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr(std::to_string(c.ids[600])));
  }
}

}  // namespace
}  // namespace hstu::testing_ranks_gpu
