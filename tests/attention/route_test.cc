#include "hstu/attention/route.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attention/routed_problem.h"
#include "hstu/base/error.h"

namespace hstu {
namespace {

using ::testing::HasSubstr;

TEST(AttentionRoute, HopperTakesHalfPrecisionOfItsHeadSizes) {
  for (const int head_dim : {32, 64, 128, 256}) {
    for (const AttentionType type : {AttentionType::bf16, AttentionType::fp16}) {
      AttentionProblem p = routed_problem();
      p.head_dim = head_dim, p.type = type;
      EXPECT_EQ(choose_attention(p, kHopper).forward, AttentionKernel::hopper);
      EXPECT_EQ(choose_attention(p, kHopper).backward, AttentionKernel::hopper);
    }
  }
}

TEST(AttentionRoute, OtherGpusSinceAmpereTakeMmaAndSayWhy) {
  for (const int head_dim : {32, 64, 128, 256}) {
    for (const AttentionDevice device :
         {AttentionDevice{8, 0, 108}, {8, 6, 84}, {8, 9, 142}, {10, 0, 148}, {12, 0, 188}}) {
      AttentionProblem p = routed_problem();
      p.head_dim = head_dim;
      p.deterministic = head_dim == 64;
      const AttentionRoute route = choose_attention(p, device);
      EXPECT_EQ(route.forward, AttentionKernel::mma);
      EXPECT_EQ(route.backward, AttentionKernel::mma);
      EXPECT_THAT(route.why, HasSubstr(fmt::format("{}.{} is not 9.0", device.major, device.minor)));
    }
  }
}

TEST(AttentionRoute, TheRestGoesToThePlainKernelsAndSaysWhy) {
  const auto why = [](const AttentionProblem& p, const AttentionDevice& device) {
    const AttentionRoute route = choose_attention(p, device);
    EXPECT_EQ(route.forward, AttentionKernel::plain);
    EXPECT_EQ(route.backward, AttentionKernel::plain);
    return route.why;
  };
  EXPECT_THAT(why(routed_problem(), {7, 5, 68}), HasSubstr("compute capability 7.5 is below 8.0"));
  for (const AttentionDevice device : {kHopper, kAmpere}) {
    AttentionProblem p = routed_problem();
    p.type = AttentionType::fp32;
    EXPECT_THAT(why(p, device), HasSubstr("fp32"));
    p = routed_problem();
    p.head_dim = 96;
    EXPECT_THAT(why(p, device), HasSubstr("head size 96"));
    p = routed_problem();
    p.k.row_stride = 513;
    EXPECT_THAT(why(p, device), HasSubstr("no multiple of 8"));
    p = routed_problem();
    p.v.data = reinterpret_cast<void*>(8);
    EXPECT_THAT(why(p, device), HasSubstr("not aligned to 16 bytes"));
    p = routed_problem();
    p.tokens = (64 << 20) + 1;
    EXPECT_THAT(why(p, device), HasSubstr("more than 67108864"));
  }
  AttentionProblem p = routed_problem();
  p.samples = 1 << 29;
  EXPECT_THAT(why(p, kAmpere), HasSubstr("536870912 samples of 4 heads are more than a launch has blocks"));
}

TEST(AttentionRoute, SamplesTooLongForHopperTakeMma) {
  AttentionProblem p = routed_problem();
  p.tokens = 3 << 20;
  EXPECT_EQ(choose_attention(p, kHopper).forward, AttentionKernel::mma);
  EXPECT_EQ(choose_attention(p, kHopper).backward, AttentionKernel::mma);
  EXPECT_THAT(choose_attention(p, kHopper).why, HasSubstr("more than 1048576"));
  p.longest = 4096;
  EXPECT_EQ(choose_attention(p, kHopper).forward, AttentionKernel::hopper);
}

TEST(AttentionRoute, DeterministicGivesTheSumsOnHopperOneOrder) {
  AttentionProblem p = routed_problem();
  p.deterministic = true;
  EXPECT_EQ(choose_attention(p, kHopper).forward, AttentionKernel::hopper);
  EXPECT_EQ(choose_attention(p, kHopper).backward, AttentionKernel::hopper);
  EXPECT_EQ(choose_attention(p, kHopper).why,
            "kernels for Hopper, backward dQ added up in one order (deterministic)");
}

TEST(AttentionRoute, BlocksShareTilesWhereSamplesAreLongOnAverage) {
  for (const int head_dim : {32, 64, 128, 256}) {
    AttentionProblem p = routed_problem();
    p.head_dim = head_dim;
    p.tokens = 256 * p.samples - 1;
    EXPECT_EQ(choose_attention(p, kHopper).forward_cluster, 1);
    ++p.tokens;
    EXPECT_EQ(choose_attention(p, kHopper).forward_cluster, head_dim >= 128 ? 2 : 1);
    EXPECT_EQ(choose_attention(p, kAmpere).forward_cluster, 1);
  }
  AttentionProblem p = routed_problem();
  p.tokens = 4096;
  EXPECT_EQ(choose_attention(p, kHopper).why, "kernels for Hopper, forward two blocks to a tile");
}

TEST(AttentionRoute, AnotherDevicesKernelsRunWhereTheyCan) {
  const AttentionDevice as_ampere = device_as(kHopper, {8, 0, 0});
  EXPECT_EQ(choose_attention(routed_problem(), as_ampere).forward, AttentionKernel::mma);
  EXPECT_EQ(as_ampere.multiprocessors, kHopper.multiprocessors);
  EXPECT_EQ(choose_attention(routed_problem(), device_as(kHopper, {9, 0, 0})).forward,
            AttentionKernel::hopper);
  EXPECT_EQ(choose_attention(routed_problem(), device_as(kAmpere, {7, 5, 0})).forward,
            AttentionKernel::plain);
  EXPECT_EQ(choose_attention(routed_problem(), device_as({10, 0, 148}, {12, 0, 0})).forward,
            AttentionKernel::mma);
  for (const auto& [real, asked] : {std::pair{kAmpere, AttentionDevice{9, 0, 0}},
                                    {AttentionDevice{10, 0, 148}, AttentionDevice{9, 0, 0}},
                                    {AttentionDevice{7, 5, 68}, AttentionDevice{8, 0, 0}}}) {
    EXPECT_THROW(device_as(real, asked), UsageError) << real.major << " as " << asked.major;
  }
}

TEST(AttentionRoute, ChosenKernelsAreTakenOrRefusedByTheKeysName) {
  const auto route = [](AttentionChoice choice, const AttentionDevice& device, bool few = false) {
    AttentionProblem p = routed_problem();
    const std::int64_t offsets[1] = {};
    p.kernels = choice;
    if (few) p.query_offsets = offsets;
    return choose_attention(p, device).forward;
  };
  EXPECT_EQ(route(AttentionChoice::mma, kHopper), AttentionKernel::mma);
  EXPECT_EQ(route(AttentionChoice::hopper, kHopper), AttentionKernel::hopper);
  EXPECT_EQ(route(AttentionChoice::plain, kHopper), AttentionKernel::plain);
  EXPECT_EQ(route(AttentionChoice::plain, kHopper, true), AttentionKernel::plain);
  EXPECT_EQ(route(AttentionChoice::mma, kHopper, true), AttentionKernel::few_queries);
  const auto complaint = [&](AttentionChoice choice, const AttentionDevice& device, auto change) {
    AttentionProblem p = routed_problem();
    p.kernels = choice;
    change(p);
    try {
      choose_attention(p, device);
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string("not refused");
  };
  const auto none = [](AttentionProblem&) {};
  EXPECT_THAT(complaint(AttentionChoice::hopper, kAmpere, none),
              HasSubstr("attention = \"hopper\": compute capability 8.0 is not 9.0; use auto"));
  EXPECT_THAT(complaint(AttentionChoice::mma, {7, 5, 68}, none), HasSubstr("is below 8.0"));
  EXPECT_THAT(complaint(AttentionChoice::mma, kHopper, [](AttentionProblem& p) { p.head_dim = 96; }),
              HasSubstr("attention = \"mma\": head size 96"));
  EXPECT_THAT(
      complaint(AttentionChoice::mma, kHopper, [](AttentionProblem& p) { p.type = AttentionType::fp32; }),
      HasSubstr("fp32 has no tensor core route"));
  for (const AttentionChoice choice : {AttentionChoice::hopper, AttentionChoice::mma, AttentionChoice::plain})
    EXPECT_THAT(complaint(choice, kHost, [](AttentionProblem& p) { p.type = AttentionType::fp32; }),
                HasSubstr("the host has one form of attention"));
}

TEST(AttentionRoute, TheHostComputesOnTheCpu) {
  AttentionProblem p = routed_problem();
  p.head_dim = 300;
  for (const AttentionType type : {AttentionType::fp32, AttentionType::fp64}) {
    p.type = type;
    EXPECT_EQ(choose_attention(p, kHost).forward, AttentionKernel::cpu);
    EXPECT_EQ(choose_attention(p, kHost).backward, AttentionKernel::cpu);
  }
  EXPECT_EQ(to_string(AttentionKernel::cpu), "cpu");
}

TEST(AttentionRoute, QueryOffsetsGoToTheKernelsForFewQueriesOnEveryGpu) {
  const std::vector<std::int64_t> query_offsets{0, 1, 2, 3, 4};
  AttentionProblem p = routed_problem();
  p.query_offsets = query_offsets.data(), p.queries = 4;
  for (const AttentionDevice device : {kHopper, kAmpere, AttentionDevice{7, 5, 68}}) {
    const AttentionRoute route = choose_attention(p, device);
    EXPECT_EQ(route.forward, AttentionKernel::few_queries);
    EXPECT_EQ(route.backward, AttentionKernel::few_queries);
    AttentionProblem other = p;
    for (const AttentionType type : {AttentionType::fp32, AttentionType::fp16}) {
      other.type = type;
      EXPECT_EQ(choose_attention(other, device).forward, AttentionKernel::plain);
    }
    other = p;
    other.head_dim = 40;
    EXPECT_EQ(choose_attention(other, device).backward, AttentionKernel::plain);
    EXPECT_THAT(choose_attention(other, device).why, HasSubstr("head size 40"));
  }
  EXPECT_EQ(to_string(AttentionKernel::few_queries), "few_queries");
}

TEST(AttentionRoute, WhatTheDeviceDoesNotComputeIsRefusedWithFieldAndValue) {
  const auto refusal = [](auto change, const AttentionDevice& device) -> std::string {
    AttentionProblem p = routed_problem();
    change(p);
    try {
      choose_attention(p, device);
    } catch (const Error& error) {
      return error.what();
    }
    return "none";
  };
  EXPECT_EQ(refusal([](auto&) {}, kHopper), "none");
  EXPECT_THAT(refusal([](auto& p) { p.head_dim = 257; }, kHopper),
              HasSubstr("head size of 1 to 256, found 257"));
  EXPECT_THAT(refusal([](auto& p) { p.type = AttentionType::fp64; }, kAmpere), HasSubstr("fp64"));
  EXPECT_THAT(refusal([](auto& p) { p.type = AttentionType::fp16; }, kHost), HasSubstr("fp32 and fp64 only"));
  EXPECT_THAT(refusal([](auto& p) { p.heads = 0; }, kHost), HasSubstr("found 0 heads"));
}

TEST(AttentionRoute, ARelativeBiasGoesToKernelsThatKnowIt) {
  static const float table[3] = {};
  static const std::int64_t offsets[2] = {};
  for (const int head_dim : {32, 64, 128, 256}) {
    AttentionProblem p = routed_problem();
    p.head_dim = head_dim, p.bias.position_table = table, p.bias.positions = 2;
    EXPECT_EQ(choose_attention(p, kHopper).forward,
              head_dim == 256 ? AttentionKernel::mma : AttentionKernel::hopper);
    EXPECT_EQ(choose_attention(p, kHopper).backward,
              head_dim >= 128 ? AttentionKernel::mma : AttentionKernel::hopper);
    EXPECT_EQ(choose_attention(p, kAmpere).forward, AttentionKernel::mma);
    EXPECT_EQ(choose_attention(p, kAmpere).backward, AttentionKernel::mma);
    p.query_offsets = offsets;
    EXPECT_EQ(choose_attention(p, kHopper).forward, AttentionKernel::plain);
    EXPECT_THAT(choose_attention(p, kHopper).why, HasSubstr("query offsets with a relative bias"));
  }
  AttentionProblem p = routed_problem();
  p.head_dim = 128, p.bias.position_table = table, p.bias.positions = 2;
  EXPECT_THAT(choose_attention(p, kHopper).why, HasSubstr("backward with a relative bias by mma"));
  static const std::int64_t time = 0;
  p.bias = {.time_table = table, .buckets = 256, .thresholds = &time, .query_time = &time, .key_time = &time};
  EXPECT_EQ(choose_attention(p, kHopper).forward, AttentionKernel::plain);
  EXPECT_THAT(choose_attention(p, kHopper).why, HasSubstr("256 thresholds of times, more than 255"));
}

TEST(AttentionRoute, ABiasTooLargeForAGpuIsRefused) {
  static const float table[3] = {};
  static const std::int64_t time = 0;
  AttentionProblem p = routed_problem();
  p.bias = {
      .time_table = table, .buckets = 65536, .thresholds = &time, .query_time = &time, .key_time = &time};
  try {
    choose_attention(p, kAmpere);
    ADD_FAILURE() << "nothing was refused";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("at most 65535 thresholds"));
  }
}

TEST(AttentionRoute, FewLongSamplesOfLargeHeadsGoToTilesOfQueriesOnHopper) {
  const auto forward = [](std::int64_t samples, std::int64_t tokens, std::int64_t head_dim) {
    AttentionProblem p = routed_problem();
    p.samples = samples, p.tokens = tokens, p.head_dim = head_dim;
    return choose_attention(p, kHopper).forward;
  };
  EXPECT_EQ(forward(1, 4096, 256), AttentionKernel::queries);
  EXPECT_EQ(forward(1, 1023, 256), AttentionKernel::hopper);
  EXPECT_EQ(forward(2, 8192, 256), AttentionKernel::hopper);
  EXPECT_EQ(forward(1, 4096, 128), AttentionKernel::hopper);
}

TEST(AttentionRoute, EveryKernelHasARowOfWhatItSupports) {
  for (const AttentionKernel kernel :
       {AttentionKernel::cpu, AttentionKernel::hopper, AttentionKernel::mma, AttentionKernel::few_queries,
        AttentionKernel::plain, AttentionKernel::softmax, AttentionKernel::single_rows,
        AttentionKernel::queries})
    EXPECT_EQ(missing_support(AttentionProblem(), kernel), "");
}

}  // namespace
}  // namespace hstu
