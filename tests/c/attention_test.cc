// The C interface from outside: what it answers, above all to what is wrong. Results are compared in
// examples/.
#include "hstu/attention.h"

#include <cstring>
#include <string>
#include <thread>

#include <gmock/gmock.h>

#include "c/header.h"

namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

bool has_gpu() {
  const hstu_attention_problem p = usual_problem();
  char line[256];
  return hstu_attention_explain(&p, line, sizeof line) == 0;
}

// Every call that takes a problem must refuse; gives the message of the last, which all must share.
std::string refusal(const hstu_attention_problem* p) {
  const hstu_rows rows{nullptr, 128, 64};
  std::int64_t forward = 0, backward = 0;
  char line[256];
  EXPECT_EQ(hstu_attention_workspace(p, &forward, &backward), 1);
  const std::string text = hstu_attention_error();
  EXPECT_EQ(hstu_attention_explain(p, line, sizeof line), 1);
  EXPECT_EQ(hstu_attention_error(), text);
  EXPECT_EQ(hstu_attention_forward(p, &rows, nullptr, nullptr), 1);
  EXPECT_EQ(hstu_attention_error(), text);
  EXPECT_EQ(hstu_attention_backward(p, &rows, &rows, &rows, &rows, nullptr, nullptr), 1);
  EXPECT_EQ(hstu_attention_error(), text);
  return text;
}

TEST(AttentionInC, DefaultsAreTheHeaders) {
  EXPECT_STREQ(wrong_default(), "");
}

TEST(AttentionInC, AProblemThatWasNotInitialisedIsRefusedByItsSize) {
  hstu_attention_problem p{};
  EXPECT_THAT(refusal(&p),
              AllOf(HasSubstr("the problem has 0 bytes"), HasSubstr("hstu_attention_problem_init")));
  p = usual_problem();
  p.size -= 8;
  EXPECT_THAT(refusal(&p),
              AllOf(HasSubstr(std::to_string(sizeof p - 8)), HasSubstr(std::to_string(sizeof p))));
  EXPECT_THAT(refusal(nullptr), HasSubstr("problem is NULL"));
}

TEST(AttentionInC, AnUnknownTypeIsNamedWithItsValue) {
  hstu_attention_problem p = usual_problem();
  const int unknown = 7;
  static_assert(sizeof p.type == sizeof unknown);
  std::memcpy(&p.type, &unknown, sizeof unknown);  // a cast to the enumeration would be undefined
  EXPECT_THAT(refusal(&p), AllOf(HasSubstr("type"), HasSubstr("HSTU_FP32, found 7")));
}

TEST(AttentionInC, RowsThatAreNullAreNamed) {
  const hstu_attention_problem p = usual_problem();
  const hstu_rows rows{nullptr, 128, 64};
  EXPECT_EQ(hstu_attention_forward(&p, nullptr, nullptr, nullptr), 1);
  EXPECT_THAT(hstu_attention_error(), HasSubstr("o is NULL"));
  const hstu_rows* const all[4][4] = {{nullptr, &rows, &rows, &rows},
                                      {&rows, nullptr, &rows, &rows},
                                      {&rows, &rows, nullptr, &rows},
                                      {&rows, &rows, &rows, nullptr}};
  const char* const names[] = {"d_o is NULL", "dq is NULL", "dk is NULL", "dv is NULL"};
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(hstu_attention_backward(&p, all[i][0], all[i][1], all[i][2], all[i][3], nullptr, nullptr), 1);
    EXPECT_THAT(hstu_attention_error(), HasSubstr(names[i]));
  }
  EXPECT_EQ(hstu_attention_explain(&p, nullptr, 10), 1);
  EXPECT_THAT(hstu_attention_error(), HasSubstr("text is NULL"));
}

TEST(AttentionInC, EveryThreadHasItsOwnMessage) {
  EXPECT_EQ(hstu_attention_workspace(nullptr, nullptr, nullptr), 1);
  const std::string here = hstu_attention_error();
  std::thread([] {
    EXPECT_STREQ(hstu_attention_error(), "");
    hstu_attention_problem p{};
    EXPECT_EQ(hstu_attention_workspace(&p, nullptr, nullptr), 1);
  }).join();
  EXPECT_EQ(hstu_attention_error(), here);
}

TEST(AttentionInC, WithoutAGpuEveryCallSaysSo) {
  if (has_gpu()) GTEST_SKIP() << "there is a GPU";
  const hstu_attention_problem p = usual_problem();
  EXPECT_THAT(refusal(&p), HasSubstr("CUDA"));
}

TEST(AttentionInC, WhatNoKernelComputesIsRefusedWithFieldAndValue) {
  if (!has_gpu()) GTEST_SKIP() << "no GPU here: which device it is comes first";
  hstu_attention_problem p = usual_problem();
  p.head_dim = 0;
  EXPECT_THAT(refusal(&p), HasSubstr("head size of 1 to 256, found 0"));
  p = usual_problem();
  p.heads = 0;
  EXPECT_THAT(refusal(&p), HasSubstr("heads, found 0"));
}

TEST(AttentionInC, MemoryThatWasForgottenIsNamed) {
  if (!has_gpu()) GTEST_SKIP() << "no GPU here: which device it is comes first";
  hstu_attention_problem p = usual_problem();
  const hstu_rows rows{nullptr, 128, 64};
  const auto message = [&] {
    EXPECT_EQ(hstu_attention_forward(&p, &rows, nullptr, nullptr), 1);
    return std::string(hstu_attention_error());
  };
  // Never read: every message comes before a launch.
  EXPECT_THAT(message(), HasSubstr("offsets is NULL"));
  const std::int64_t offsets[] = {0};
  p.offsets = offsets;
  EXPECT_THAT(message(), HasSubstr("q has no data"));
  alignas(16) char data[16];
  p.q.data = p.k.data = data;
  EXPECT_THAT(message(), HasSubstr("v has no data"));
  p.v.data = data;
  EXPECT_THAT(message(), HasSubstr("o has no data"));
}

TEST(AttentionInC, ExplanationsAreCutToTheRoomGiven) {
  if (!has_gpu()) GTEST_SKIP() << "no GPU here";
  const hstu_attention_problem p = usual_problem();
  char line[256], start[9] = "________";
  ASSERT_EQ(hstu_attention_explain(&p, line, sizeof line), 0);
  EXPECT_THAT(line, HasSubstr("forward "));
  ASSERT_EQ(hstu_attention_explain(&p, start, 8), 0);
  EXPECT_EQ(std::string(start), std::string(line).substr(0, 7));
  EXPECT_EQ(hstu_attention_explain(&p, nullptr, 0), 0);
}

TEST(AttentionInC, AnEmptyBatchNeedsNoMemory) {
  if (!has_gpu()) GTEST_SKIP() << "no GPU here";
  hstu_attention_problem p = usual_problem();
  p.samples = p.tokens = 0;
  const hstu_rows rows{nullptr, 128, 64};
  EXPECT_EQ(hstu_attention_forward(&p, &rows, nullptr, nullptr), 0) << hstu_attention_error();
  EXPECT_EQ(hstu_attention_backward(&p, &rows, &rows, &rows, &rows, nullptr, nullptr), 0)
      << hstu_attention_error();
}

}  // namespace
