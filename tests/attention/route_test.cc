#include "hstu/attention/route.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/base/error.h"

namespace hstu {
namespace {

using ::testing::HasSubstr;

constexpr AttentionDevice kHopper{9, 0, 132}, kAmpere{8, 0, 108};

AttentionProblem routed_problem() {
  AttentionProblem p;
  p.samples = 4, p.tokens = 1000, p.heads = 4, p.head_dim = 128;
  p.q = p.k = p.v = {nullptr, 4 * 512, 128};
  p.alpha = 0.1;
  return p;
}

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

// A problem with cached keys, of which the pointers are read by nothing.
CachedKeys any_past() {
  static const std::int64_t offsets[2] = {};
  alignas(16) static const std::int32_t pages[1] = {};
  return {.k = pages,
          .v = pages,
          .page_tokens = 1,
          .pasts = 1,
          .pages = pages,
          .page_offsets = offsets,
          .lengths = offsets,
          .past_of = pages};
}

// What the kernels that work pair by pair compute, by either function of the scores.
constexpr void (*kByPairs[])(AttentionProblem&) = {
    [](AttentionProblem& p) { p.score = ScoreFunction::softmax; },
    [](AttentionProblem& p) { p.mask.hidden_period = 3; }, [](AttentionProblem& p) { p.past = any_past(); },
    [](AttentionProblem& p) { p.dropout.rate = 0.5; }};

TEST(AttentionRoute, WhatIsComputedPairByPairHasAKernelOfItsOwn) {
  static const std::int64_t offsets[2] = {};
  for (const AttentionDevice device : {kHopper, AttentionDevice{8, 0, 108}, AttentionDevice{7, 5, 40}}) {
    for (const AttentionType type : {AttentionType::bf16, AttentionType::fp32}) {
      for (const bool few : {false, true}) {
        AttentionProblem all;
        all.type = type, all.samples = 1, all.heads = 2, all.head_dim = 64, all.offsets = offsets;
        if (few) all.query_offsets = offsets;
        for (const auto change : kByPairs) {
          AttentionProblem p = all;
          change(p), change(all);
          if (p.score != ScoreFunction::softmax) {
            EXPECT_EQ(choose_attention(p, device).forward, AttentionKernel::softmax);
          }
          p.kernels = AttentionChoice::plain;
          EXPECT_EQ(choose_attention(p, device).backward, AttentionKernel::softmax);
        }
        EXPECT_EQ(choose_attention(all, device).backward, AttentionKernel::softmax);
      }
    }
  }
}

// Trap: a kernel that does not know a field of the problem leaves it out in silence.
TEST(AttentionRoute, WhatNoKernelForGpusComputesIsRefusedByName) {
  static const float table[3] = {};
  const std::pair<const char*, void (*)(AttentionProblem&)> refused[] = {
      {"a relative bias",
       [](AttentionProblem& p) {
         p.bias.position_table = table, p.bias.positions = 2;
         p.mask.hidden_period = 3;
       }},
      {"a relative bias",
       [](AttentionProblem& p) {
         p.bias.position_table = table, p.bias.positions = 2;
         p.past = any_past();
       }},
      {"cached keys", [](AttentionProblem& p) { p.row_stable = true, p.past = any_past(); }},
      {"softmax scores", [](AttentionProblem& p) { p.row_stable = true, p.score = ScoreFunction::softmax; }},
      {"attention = \"mma\": the mma kernels do not compute hidden keys; use auto",
       [](AttentionProblem& p) { p.kernels = AttentionChoice::mma, p.mask.hidden_period = 3; }}};
  for (const AttentionDevice device : {kHopper, AttentionDevice{8, 0, 108}}) {
    for (const auto& [words, change] : refused) {
      AttentionProblem p = routed_problem();
      EXPECT_NO_THROW(choose_attention(p, device));
      change(p);
      try {
        choose_attention(p, device);
        ADD_FAILURE() << words;
      } catch (const Error& error) {
        EXPECT_THAT(error.what(), HasSubstr(words));
      }
      p.type = AttentionType::fp32, p.kernels = AttentionChoice::automatic;
      EXPECT_EQ(choose_attention(p, kHost).forward, AttentionKernel::cpu) << words;
    }
  }
}

// Whatever the sizes: a choice by the number of rows would change the bits of a row.
TEST(AttentionRoute, StableRowsAreComputedOneByOneOnEveryGpu) {
  static const std::int64_t offsets[2] = {};
  for (const AttentionDevice device : {AttentionDevice{9, 0, 132}, {8, 0, 108}, {7, 5, 40}}) {
    for (const AttentionType type : {AttentionType::bf16, AttentionType::fp32}) {
      for (const std::int64_t tokens : {1, 100, 100'000}) {
        AttentionProblem p;
        p.type = type, p.samples = 1, p.tokens = tokens, p.heads = 2, p.head_dim = 64, p.offsets = offsets;
        const AttentionRoute before = choose_attention(p, device);
        p.row_stable = true;
        const AttentionRoute route = choose_attention(p, device);
        EXPECT_EQ(route.forward, AttentionKernel::single_rows);
        EXPECT_EQ(route.forward_cluster, 1);
        EXPECT_EQ(route.backward, before.backward);
        p.mask.hidden_period = 3;
        EXPECT_THROW(choose_attention(p, device), Error);
      }
    }
  }
}

TEST(AttentionRoute, ManyQueriesAndCachedKeysGoToTilesOfQueriesOnHopper) {
  const std::vector<std::int64_t> query_offsets{0, 16, 32, 48, 64};
  AttentionProblem p = routed_problem();
  p.query_offsets = query_offsets.data(), p.queries = 64;
  EXPECT_EQ(choose_attention(p, kHopper).forward, AttentionKernel::queries);
  EXPECT_EQ(choose_attention(p, kHopper).backward, AttentionKernel::few_queries);
  EXPECT_EQ(choose_attention(p, kAmpere).forward, AttentionKernel::few_queries);
  p.queries = 63;
  EXPECT_EQ(choose_attention(p, kHopper).forward, AttentionKernel::few_queries);
  AttentionProblem cached = routed_problem();
  cached.past = any_past();
  EXPECT_EQ(choose_attention(cached, kHopper).forward, AttentionKernel::softmax) << "pages of one token";
  cached.past.page_tokens = 24;
  EXPECT_EQ(choose_attention(cached, kHopper).forward, AttentionKernel::queries);
  EXPECT_EQ(choose_attention(cached, kHopper).backward, AttentionKernel::softmax);
  EXPECT_EQ(choose_attention(cached, kAmpere).forward, AttentionKernel::softmax);
  cached.mask.left = 100;
  EXPECT_EQ(choose_attention(cached, kHopper).forward, AttentionKernel::softmax);
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
