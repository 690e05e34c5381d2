// The C interface as its callers see it: above all, what it refuses. Results are compared in examples/.
#include "hstu/attention.h"

#include <cstddef>
#include <cstdint>
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

alignas(256) std::byte some_memory[1024];  // never read: every message comes before a launch

hstu_rows some_rows() {
  return {some_memory, 128, 64};
}

// A problem with (host) memory for everything that it needs.
hstu_attention_problem complete_problem() {
  static const std::int64_t offsets[5] = {};
  hstu_attention_problem p = usual_problem();
  p.offsets = offsets;
  p.q.data = p.k.data = p.v.data = some_memory;
  return p;
}

// Every call that takes a problem must refuse; gives the message, which all must share.
std::string refusal(const hstu_attention_problem* p) {
  const hstu_rows rows = some_rows();
  char line[256];
  EXPECT_EQ(hstu_attention_workspace(p, nullptr, nullptr), 1);
  const std::string text = hstu_attention_error();
  const auto expect_the_same = [&](int status) {
    EXPECT_EQ(status, 1);
    EXPECT_EQ(hstu_attention_error(), text);
  };
  expect_the_same(hstu_attention_explain(p, line, sizeof line));
  expect_the_same(hstu_attention_check(p, nullptr));
  expect_the_same(hstu_attention_forward(p, &rows, nullptr, 0, nullptr));
  expect_the_same(hstu_attention_backward(p, &rows, &rows, &rows, &rows, nullptr, 0, nullptr));
  return text;
}

std::string forward_refusal(const hstu_attention_problem& p, const hstu_rows* o, void* workspace = nullptr,
                            std::int64_t bytes = 0) {
  EXPECT_EQ(hstu_attention_forward(&p, o, workspace, bytes, nullptr), 1);
  return hstu_attention_error();
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
  hstu_attention_problem_init(nullptr);
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
  const hstu_attention_problem p = complete_problem();
  const hstu_rows rows = some_rows();
  EXPECT_THAT(forward_refusal(p, nullptr), HasSubstr("o is NULL"));
  const hstu_rows* const all[4][4] = {{nullptr, &rows, &rows, &rows},
                                      {&rows, nullptr, &rows, &rows},
                                      {&rows, &rows, nullptr, &rows},
                                      {&rows, &rows, &rows, nullptr}};
  const char* const names[] = {"d_o is NULL", "dq is NULL", "dk is NULL", "dv is NULL"};
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(hstu_attention_backward(&p, all[i][0], all[i][1], all[i][2], all[i][3], nullptr, 0, nullptr),
              1);
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
  const hstu_attention_problem p = complete_problem();
  EXPECT_THAT(refusal(&p), HasSubstr("CUDA"));
}

// The checks of a description come before any device is used: these tests need no GPU.

TEST(AttentionInC, WhatNoKernelComputesIsRefusedWithFieldAndValue) {
  const auto with = [](auto change) {
    hstu_attention_problem p = complete_problem();
    change(p);
    return refusal(&p);
  };
  EXPECT_THAT(with([](auto& p) { p.head_dim = 0; }), HasSubstr("head size of 1 or more, found 0"));
  EXPECT_THAT(with([](auto& p) { p.head_dim = 257; }), HasSubstr("head size of 1 to 256, found 257"));
  EXPECT_THAT(with([](auto& p) { p.heads = 0; }), HasSubstr("found 0 heads"));
  EXPECT_THAT(with([](auto& p) { p.samples = -3; }), HasSubstr("samples must not be negative, found -3"));
  EXPECT_THAT(with([](auto& p) { p.tokens = -1; }), HasSubstr("tokens must not be negative, found -1"));
  EXPECT_THAT(with([](auto& p) { p.queries = -2; }), HasSubstr("queries must not be negative, found -2"));
  EXPECT_THAT(with([](auto& p) { p.longest = -4; }), HasSubstr("longest must not be negative, found -4"));
  EXPECT_THAT(with([](auto& p) { p.target_group = -5; }), HasSubstr("target group of 1 or more, found -5"));
  EXPECT_THAT(with([](auto& p) { p.k.row_stride = -8; }),
              HasSubstr("k: strides must not be negative, found -8"));
  EXPECT_THAT(with([](auto& p) { p.q.data = some_memory + 1; }), HasSubstr("q must be aligned to 2 bytes"));
}

TEST(AttentionInC, OutputStridesThatAreNegativeOrLetRowsShareMemoryAreRefused) {
  const hstu_attention_problem p = complete_problem();
  const hstu_rows right = some_rows();
  const auto refused = [&](std::int64_t row_stride, std::int64_t head_stride) {
    const hstu_rows wrong{some_memory, row_stride, head_stride};
    std::string text = forward_refusal(p, &wrong);
    EXPECT_EQ(hstu_attention_backward(&p, &right, &wrong, &right, &right, nullptr, 0, nullptr), 1);
    text += hstu_attention_error();
    EXPECT_EQ(hstu_attention_backward(&p, &right, &right, &wrong, &right, nullptr, 0, nullptr), 1);
    text += hstu_attention_error();
    EXPECT_EQ(hstu_attention_backward(&p, &right, &right, &right, &wrong, nullptr, 0, nullptr), 1);
    return text + hstu_attention_error();
  };
  const auto of_every_output = [](const std::string& words) {
    return AllOf(HasSubstr("o: " + words), HasSubstr("dq: " + words), HasSubstr("dk: " + words),
                 HasSubstr("dv: " + words));
  };
  EXPECT_THAT(refused(-128, 64), of_every_output("strides must not be negative, found -128 and 64"));
  EXPECT_THAT(refused(128, -64), of_every_output("strides must not be negative, found 128 and -64"));
  EXPECT_THAT(refused(0, 64), of_every_output("rows share memory"));
  EXPECT_THAT(refused(128, 0), of_every_output("rows share memory"));
  EXPECT_THAT(refused(120, 64), of_every_output("rows share memory"));
}

TEST(AttentionInC, AWorkspaceThatIsNotAlignedOrHasANegativeSizeIsRefused) {
  const hstu_attention_problem p = complete_problem();
  const hstu_rows rows = some_rows();
  EXPECT_THAT(forward_refusal(p, &rows, some_memory + 64, 512),
              HasSubstr("the workspace must be aligned to 256 bytes"));
  EXPECT_THAT(forward_refusal(p, &rows, some_memory, -1), HasSubstr("the workspace has -1 bytes"));
}

TEST(AttentionInC, AWorkspaceThatIsTooSmallIsRefused) {
  if (!has_gpu()) GTEST_SKIP() << "no GPU here: the bytes depend on the kernels";
  const hstu_attention_problem p = complete_problem();
  const hstu_rows rows = some_rows();
  std::int64_t forward = 0, backward = 0;
  ASSERT_EQ(hstu_attention_workspace(&p, &forward, &backward), 0);
  if (forward == 0) GTEST_SKIP() << "this GPU has the plain kernels only";
  EXPECT_THAT(forward_refusal(p, &rows, some_memory, forward - 1),
              AllOf(HasSubstr(std::to_string(forward - 1) + " bytes"), HasSubstr(std::to_string(forward))));
  EXPECT_THAT(forward_refusal(p, &rows), HasSubstr("the workspace has 0 bytes"));
  EXPECT_EQ(hstu_attention_backward(&p, &rows, &rows, &rows, &rows, some_memory, backward - 1, nullptr), 1);
  EXPECT_THAT(hstu_attention_error(), HasSubstr(std::to_string(backward)));
}

TEST(AttentionInC, MemoryThatWasForgottenIsNamed) {
  hstu_attention_problem p = complete_problem();
  hstu_rows rows = some_rows();
  p.offsets = nullptr;
  EXPECT_THAT(forward_refusal(p, &rows), HasSubstr("offsets is NULL"));
  p = complete_problem(), p.q.data = nullptr;
  EXPECT_THAT(forward_refusal(p, &rows), HasSubstr("q has no data"));
  p = complete_problem(), p.v.data = nullptr;
  EXPECT_THAT(forward_refusal(p, &rows), HasSubstr("v has no data"));
  p = complete_problem(), rows.data = nullptr;
  EXPECT_THAT(forward_refusal(p, &rows), HasSubstr("o has no data"));
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
  EXPECT_EQ(hstu_attention_forward(&p, &rows, nullptr, 0, nullptr), 0) << hstu_attention_error();
  EXPECT_EQ(hstu_attention_backward(&p, &rows, &rows, &rows, &rows, nullptr, 0, nullptr), 0)
      << hstu_attention_error();
}

}  // namespace
