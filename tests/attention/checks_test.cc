#include "hstu/attention/checks.h"

#include <limits>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/base/error.h"

namespace hstu {
namespace {

using ::testing::HasSubstr;

// The message of an Error; "none" if there is none.
template <typename Body>
std::string refusal(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

AttentionProblem usual() {
  AttentionProblem p;
  p.samples = 4, p.tokens = 1000, p.heads = 4, p.head_dim = 128;
  p.q = p.k = p.v = {nullptr, 4 * 512, 128};
  return p;
}

TEST(CheckAttention, NamesTheFieldAndItsValue) {
  const auto with = [](auto change) {
    AttentionProblem p = usual();
    change(p);
    return refusal([&] { check_attention(p); });
  };
  EXPECT_EQ(with([](auto&) {}), "none");
  EXPECT_THAT(with([](auto& p) { p.samples = -1; }), HasSubstr("samples must not be negative, found -1"));
  EXPECT_THAT(with([](auto& p) { p.tokens = -7; }), HasSubstr("tokens must not be negative, found -7"));
  EXPECT_THAT(with([](auto& p) { p.queries = -2; }), HasSubstr("queries must not be negative, found -2"));
  EXPECT_THAT(with([](auto& p) { p.longest = -3; }), HasSubstr("longest must not be negative, found -3"));
  EXPECT_THAT(with([](auto& p) { p.heads = 0; }), HasSubstr("found 0 heads"));
  EXPECT_THAT(with([](auto& p) { p.head_dim = -4; }), HasSubstr("head size of 1 or more, found -4"));
  EXPECT_THAT(with([](auto& p) { p.mask.left = -2; }), HasSubstr("found -2 and 0"));
  EXPECT_THAT(with([](auto& p) { p.mask.target_group = 0; }),
              HasSubstr("target group of 1 or more, found 0"));
  EXPECT_THAT(with([](auto& p) { p.alpha = std::numeric_limits<double>::infinity(); }), HasSubstr("finite"));
  EXPECT_THAT(with([](auto& p) { p.q.row_stride = -8; }),
              HasSubstr("q: strides must not be negative, found -8"));
  EXPECT_THAT(with([](auto& p) { p.v.head_stride = -1; }), HasSubstr("v: strides must not be negative"));
  EXPECT_THAT(with([](auto& p) { p.k.head_stride = std::int64_t{1} << 41; }), HasSubstr("below 2^40"));
}

TEST(CheckAttention, NamesPointersThatAreNotAlignedToTheirType) {
  const auto with = [](auto change) {
    AttentionProblem p = usual();
    change(p);
    return refusal([&] { check_attention(p); });
  };
  EXPECT_THAT(with([](auto& p) { p.k.data = reinterpret_cast<void*>(0x101); }),
              HasSubstr("k must be aligned to 2 bytes, found the address 0x101"));
  EXPECT_THAT(with([](auto& p) { p.type = AttentionType::fp32, p.q.data = reinterpret_cast<void*>(0x102); }),
              HasSubstr("q must be aligned to 4 bytes"));
  EXPECT_THAT(with([](auto& p) { p.offsets = reinterpret_cast<const std::int64_t*>(0x104); }),
              HasSubstr("offsets must be aligned to 8 bytes, found the address 0x104"));
  EXPECT_THAT(with([](auto& p) { p.targets = reinterpret_cast<const std::int32_t*>(0x102); }),
              HasSubstr("targets must be aligned to 4 bytes"));
}

TEST(CheckAttention, KnowsTheLimitsOfTheKernelsForGpus) {
  const auto with = [](auto change) {
    AttentionProblem p = usual();
    change(p);
    return refusal([&] { check_attention_on_gpu(p); });
  };
  EXPECT_EQ(with([](auto&) {}), "none");
  EXPECT_THAT(with([](auto& p) { p.type = AttentionType::fp64; }), HasSubstr("fp64"));
  EXPECT_THAT(with([](auto& p) { p.head_dim = 257; }), HasSubstr("head size of 1 to 256, found 257"));
  EXPECT_THAT(with([](auto& p) { p.heads = 4096; }), HasSubstr("1 to 4095 heads, found 4096"));
  EXPECT_THAT(with([](auto& p) { p.tokens = std::int64_t{1} << 31; }), HasSubstr("split the batch"));
  EXPECT_THAT(with([](auto& p) { p.alpha = 1e-40; }), HasSubstr("alpha 0 or at least 1e-30"));
  EXPECT_THAT(with([](auto& p) { p.scale = 1e300; }), HasSubstr("finite in fp32"));
}

// True where two of the rows x heads vectors share an element, by trying every pair.
bool overlaps(const AttentionRows& r, std::int64_t rows, std::int64_t heads, std::int64_t size) {
  for (std::int64_t a = 0; a < rows * heads; ++a) {
    for (std::int64_t b = 0; b < a; ++b) {
      const std::int64_t distance =
          (a / heads - b / heads) * r.row_stride + (a % heads - b % heads) * r.head_stride;
      if (std::abs(distance) < size) return true;
    }
  }
  return false;
}

TEST(CheckOutput, RefusesExactlyTheStridesThatLetRowsShareMemory) {
  std::mt19937 random(2);
  const auto below = [&](unsigned end) { return static_cast<std::int64_t>(random() % end); };
  int refused = 0;
  for (int i = 0; i < 5000; ++i) {
    AttentionProblem p = usual();
    p.heads = 1 + below(4), p.head_dim = 1 + below(4);
    const std::int64_t rows = below(7);
    const AttentionRows o{nullptr, below(24), below(24)};
    const std::string found = refusal([&] { check_output(p, "o", o, rows); });
    ASSERT_EQ(found != "none", overlaps(o, rows, p.heads, p.head_dim))
        << rows << " rows, " << p.heads << " heads of " << p.head_dim << ", strides " << o.row_stride
        << " and " << o.head_stride;
    refused += found != "none" ? 1 : 0;
  }
  EXPECT_GT(refused, 1000);
  EXPECT_LT(refused, 4000);
}

TEST(CheckOutput, NamesTheOutputAndItsStrides) {
  const AttentionProblem p = usual();
  EXPECT_THAT(refusal([&] {
                check_output(p, "dq", {nullptr, 0, 128}, 1000);
              }),
              HasSubstr("dq: rows share memory: 1000 rows of 4 heads of 128 with a row stride of 0"));
  EXPECT_THAT(refusal([&] {
                check_output(p, "dq", {nullptr, -512, 128}, 1000);
              }),
              HasSubstr("dq: strides must not be negative, found -512 and 128"));
  EXPECT_EQ(refusal([&] { check_output(p, "dq", {nullptr, 128, 128'000}, 1000); }), "none");  // heads first
}

TEST(CheckScratch, NamesBytesAndAlignment) {
  alignas(256) static char memory[512];
  EXPECT_EQ(refusal([] { check_scratch({}, 0); }), "none");
  EXPECT_EQ(refusal([] { check_scratch({memory, 512}, 512); }), "none");
  EXPECT_THAT(refusal([] {
                check_scratch({memory, 256}, 2'900'000);
              }),
              HasSubstr("the workspace has 256 bytes, 2900000 are needed"));
  EXPECT_THAT(refusal([] {
                check_scratch({nullptr, 512}, 512);
              }),
              HasSubstr("the workspace is NULL, 512 bytes"));
  EXPECT_THAT(refusal([] {
                check_scratch({memory + 16, 496}, 400);
              }),
              HasSubstr("the workspace must be aligned to 256 bytes"));
}

class CheckLists : public ::testing::Test {
 protected:
  AttentionProblem problem() {
    AttentionProblem p = usual();
    p.samples = 3, p.tokens = 20, p.queries = 9;
    p.offsets = offsets_.data(), p.query_offsets = query_offsets_.data();
    if (!first_.empty()) p.query_first = first_.data();
    p.contexts = contexts_.data(), p.targets = targets_.data(), p.sample_scale = scale_.data();
    return p;
  }
  std::string offsets_refusal() {
    return refusal([&] { check_offsets(problem()); });
  }
  std::string counts_refusal() {
    return refusal([&] { check_counts(problem()); });
  }
  std::vector<std::int64_t> offsets_{2, 10, 10, 20}, query_offsets_{0, 8, 8, 9};
  std::vector<std::int32_t> contexts_{5, 0, 0}, targets_{3, 0, 10}, first_;
  std::vector<float> scale_{1, 0, -2};
};

TEST_F(CheckLists, TakeWhatIsValid) {
  EXPECT_EQ(offsets_refusal(), "none");
  EXPECT_EQ(counts_refusal(), "none");
}

TEST_F(CheckLists, NameOffsetsThatAreNot) {
  offsets_ = {0, 10, 9, 20};
  EXPECT_THAT(offsets_refusal(),
              HasSubstr("offsets must not decrease, found offsets[1] = 10 and offsets[2] = 9"));
  offsets_ = {-1, 10, 10, 20};
  EXPECT_THAT(offsets_refusal(), HasSubstr("offsets[0] must not be negative, found -1"));
  offsets_ = {2, 10, 10, 21};
  EXPECT_THAT(offsets_refusal(), HasSubstr("offsets[3] is 21, but tokens is 20"));
  offsets_ = {2, 10, 10, 20}, query_offsets_ = {0, 8, 7, 9};
  EXPECT_THAT(offsets_refusal(), HasSubstr("query_offsets must not decrease"));
  query_offsets_ = {0, 8, 8, 10};
  EXPECT_THAT(offsets_refusal(), HasSubstr("query_offsets[3] is 10, but queries is 9"));
  query_offsets_ = {0, 1, 2, 3};
  EXPECT_THAT(offsets_refusal(), HasSubstr("sample 1 has 1 queries but 0 tokens"));
  query_offsets_ = {0, 6, 6, 9}, first_ = {3, 0, 0};
  EXPECT_THAT(offsets_refusal(),
              HasSubstr("query_first[0] is 3, expected 0 to 2 (6 of 8 tokens are queries)"));
}

TEST_F(CheckLists, NameCountsOutOfRange) {
  contexts_[0] = 6;
  EXPECT_THAT(counts_refusal(), HasSubstr("contexts[0] is 6, expected 0 to 5"));
  contexts_[0] = -1;
  EXPECT_THAT(counts_refusal(), HasSubstr("contexts[0] is -1"));
  contexts_[0] = 0, targets_[1] = 1;
  EXPECT_THAT(counts_refusal(), HasSubstr("targets[1] is 1, expected 0 to 0"));
  targets_[1] = -5;
  EXPECT_THAT(counts_refusal(), HasSubstr("targets[1] is -5"));
  targets_[1] = 0, scale_[2] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(counts_refusal(), HasSubstr("sample_scale[2] is not finite"));
}

}  // namespace
}  // namespace hstu
