// The comparison by some rows, with the CPU in place of a GPU: it takes what is right and sees what is wrong.
#include "attention/sampled_rows.h"

#include <set>

#include <gtest/gtest.h>

#include "attention/compare.h"

namespace hstu {
namespace {

using Rows = std::vector<std::vector<float>>;  // of the batch: o, dq, dk and dv of all heads

DeviceCase some_case() {
  return {.name = "sampled",
          .lengths = {70, 0, 1, 200, 33},
          .heads = 3,
          .head_dim = 8,
          .type = AttentionType::fp32,
          .mask = {50, 0, 4},
          .contexts = {2, 0, 0, 5, 1},
          .targets = {9, 0, 0, 30, 3}};
}

// The exact results under the masks of `masked`, rounded.
Rows results(const HostBatch<float>& batch, const HostBatch<float>& masked) {
  const auto width = static_cast<std::size_t>(batch.width()), size = width / 3;
  Rows rows(static_cast<std::size_t>(batch.tokens()), std::vector<float>(4 * width, std::nanf("")));
  for (std::size_t b = 0; b < batch.samples(); ++b) {
    for (std::size_t head = 0; head < 3; ++head) {
      const AttentionResult exact = exact_result(masked, b, static_cast<int>(head));
      for (std::size_t i = 0; i < 4; ++i)
        for (std::size_t x = 0; x < exact.o.size(); ++x)
          rows[static_cast<std::size_t>(batch.offsets()[b]) + x / size][i * width + head * size + x % size] =
              static_cast<float>(exact[i][x]);
    }
  }
  return rows;
}

class SampledRows : public ::testing::Test {
 protected:
  std::string compare() const {
    return compare_rows(batch_, choose_rows(batch_, 0, batch_.samples(), 90),
                        [&](std::int64_t row) { return rows_[static_cast<std::size_t>(row)]; });
  }
  // Element d of an output of a head of a row of sample b.
  float& at(std::size_t b, std::size_t row, std::size_t output, std::size_t head, std::size_t d) {
    return rows_[static_cast<std::size_t>(batch_.offsets()[b]) + row][(output * 3 + head) * 8 + d];
  }
  HostBatch<float> batch_{some_case()};
  Rows rows_ = results(batch_, batch_);
};

TEST_F(SampledRows, AreTakenWhereTheyAreRight) {
  EXPECT_EQ(compare(), "");
}

TEST_F(SampledRows, AreRefusedWhereAMaskIsOffByOne) {
  DeviceCase c = some_case();
  c.mask.left = 49;
  rows_ = results(batch_, HostBatch<float>(c));
  EXPECT_NE(compare(), "");
  c = some_case(), c.targets[3] = 29;
  rows_ = results(batch_, HostBatch<float>(c));
  EXPECT_NE(compare(), "");
}

TEST_F(SampledRows, AreRefusedWhereOneIsWrongOrWasNotWritten) {
  const SampledRow row = choose_rows(batch_, 0, batch_.samples(), 90).back();
  for (std::size_t output = 0; output < 4; ++output) {
    for (const float wrong : {std::nanf(""), 0.0f, 1.0f}) {
      float& element =
          at(row.sample, static_cast<std::size_t>(row.row), output, static_cast<std::size_t>(row.head), 3);
      const float right = element;
      element = wrong;
      EXPECT_NE(compare(), "") << kOutputNames[output] << " " << wrong;
      element = right;
    }
  }
  EXPECT_EQ(compare(), "");
}

TEST_F(SampledRows, OfTheWrongHeadAreRefused) {
  for (std::vector<float>& row : rows_)
    for (std::size_t d = 0; d < 8; ++d) std::swap(row[d], row[8 + d]);
  EXPECT_NE(compare(), "");
}

// The rule over all elements lets pass what vanishes beside the error of long rows.
TEST_F(SampledRows, AreRefusedWhereTheOnlyRowOfAShortSampleIsWrong) {
  for (std::size_t head = 0; head < 3; ++head)
    for (std::size_t d = 0; d < 8; ++d) at(2, 0, 0, head, d) *= 1.5f;
  EXPECT_NE(compare(), "");
}

TEST_F(SampledRows, ComparedInFullSayTheSame) {
  const auto flat = [&] {
    std::vector<float> all;
    for (const std::vector<float>& row : rows_) all.insert(all.end(), row.begin(), row.end());
    return all;
  };
  EXPECT_EQ(compare_all(batch_, flat()).complaint(), "");
  at(3, 100, 2, 1, 0) = std::nanf("");
  EXPECT_NE(compare_all(batch_, flat()).complaint(), "");
}

TEST(ChooseRows, TakesTheEndsAndBordersAndEveryRowOfAShortSample) {
  std::mt19937 random(1);
  const SampleMask longer{1000, 70, 900, 7, 100, 0};
  std::set<int> seen;
  for (int i = 0; i < 50; ++i) {
    const std::vector<int> rows = choose_rows(longer, 10, random);
    EXPECT_EQ(rows.front(), 0);
    EXPECT_EQ(rows.back(), 999);
    EXPECT_LE(rows.size(), 12u);
    seen.insert(rows.begin(), rows.end());
  }
  for (const int border : {63, 64, 69, 70, 127, 128, 899, 900, 906, 907, 959, 960})
    EXPECT_EQ(seen.count(border), 1u) << border;
  EXPECT_EQ(choose_rows({5, 0, 5, 1, 0, 0}, 3, random).size(), 5u);
  EXPECT_TRUE(choose_rows({0, 0, 0, 1, 0, 0}, 3, random).empty());
}

TEST(HostBatch, RepeatsItsRowsAfterThePeriod) {
  DeviceCase c = some_case();
  c.period = 13;
  const HostBatch<float> batch(c);
  EXPECT_EQ(batch.rows().size(), static_cast<std::size_t>(13 * 5 * 24));
  EXPECT_EQ(batch.input(kV, 20, 1), batch.input(kV, 7, 1));
  EXPECT_EQ(*batch.input(kV, 7, 1), batch.rows()[(7 * 5 + 3) * 24 + 8]);
}

TEST(HostBatch, CopiesASampleOfAnother) {
  DeviceCase c = some_case();
  c.lengths = {33}, c.contexts = {1}, c.targets = {3};
  c.name = "another";
  const HostBatch<float> all(some_case());
  HostBatch<float> alone(c);
  alone.copy_sample(0, all, 4);
  for (const InputPart part : {kQ, kK, kV, kDo})
    for (int head = 0; head < 3; ++head) EXPECT_EQ(alone.matrix(0, head, part), all.matrix(4, head, part));
}

}  // namespace
}  // namespace hstu
