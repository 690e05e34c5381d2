// Long samples and batches of very different lengths, compared by some of their rows. The tests skip
// on machines without a GPU.
#ifdef HSTU_WITH_CUDA

#include "attention/device_kernels.h"

namespace hstu {
namespace {

class LongAttentionOnGpu : public OnGpu {
 protected:
  static void run(DeviceCase c, std::size_t more_rows) {
    c = with_kernels(std::move(c));
    if (c.type == AttentionType::fp16)
      run_and_sample<__half>(c, more_rows);
    else
      run_and_sample<__nv_bfloat16>(c, more_rows);
  }
};

const std::vector<int> kLong{4099, 16384, 1, 8191};

TEST_P(LongAttentionOnGpu, Causal) {
  run({.name = "long, causal", .lengths = kLong}, 40);
  run({.name = "long, causal, fp16", .lengths = kLong, .type = AttentionType::fp16}, 20);
}

TEST_P(LongAttentionOnGpu, Full) {
  run({.name = "long, full", .lengths = kLong, .mask = {-1, -1}}, 20);
}

TEST_P(LongAttentionOnGpu, ContextsTargetsAndAWindow) {
  run({.name = "long, contexts and targets",
       .lengths = kLong,
       .mask = {-1, 0, 5},
       .contexts = {3, 10, 0, 129},
       .targets = {512, 1001, 1, 33}},
      40);
  run({.name = "long, contexts, targets and window",
       .lengths = kLong,
       .mask = {2000, 0, 16},
       .contexts = {200, 7, 1, 0},
       .targets = {33, 640, 0, 1000}},
      40);
}

// Lengths as batches have them.
std::vector<int> zipf(std::mt19937& random) {
  std::vector<int> lengths;
  for (int rank = 1; rank <= 40; ++rank) lengths.push_back(4096 / rank);
  std::shuffle(lengths.begin(), lengths.end(), random);
  return lengths;
}
std::vector<int> one_long_among_short(std::mt19937& random) {
  std::vector<int> lengths{6001};
  for (int i = 0; i < 60; ++i) lengths.push_back(static_cast<int>(1 + random() % 40));
  std::shuffle(lengths.begin(), lengths.end(), random);
  return lengths;
}
std::vector<int> many_empty(std::mt19937& random) {
  std::vector<int> lengths{0, 0};
  for (int i = 0; i < 60; ++i) lengths.push_back(random() % 5 < 3 ? 0 : static_cast<int>(random() % 600));
  lengths.push_back(0);
  return lengths;
}

struct MaskKind {
  const char* name;
  AttentionMask mask;
  bool contexts_and_targets;
};
constexpr MaskKind kLongMasks[] = {{"causal", {-1, 0}, false},
                                   {"full", {-1, -1}, false},
                                   {"local", {200, 0}, false},
                                   {"local to both sides", {100, 50}, false},
                                   {"causal, contexts and targets", {-1, 0, 3}, true},
                                   {"local, contexts and targets", {300, 0, 7}, true},
                                   {"full, contexts and targets", {-1, -1, 5}, true}};

class LengthsOnGpu : public LongAttentionOnGpu {
 protected:
  static void run_all_masks(const std::string& name, const std::vector<int>& lengths, std::mt19937& random) {
    for (const MaskKind& kind : kLongMasks) {
      DeviceCase c{.name = name + ", " + kind.name, .lengths = lengths, .mask = kind.mask};
      for (std::size_t b = 0; kind.contexts_and_targets && b < lengths.size(); ++b) {
        c.contexts.push_back(static_cast<int>(random() % 4 == 0 ? random() % 150 : random() % 4));
        c.targets.push_back(static_cast<int>(random() % 4 == 0 ? random() % 300 : random() % 20));
      }
      run(std::move(c), 6);
    }
  }
  std::mt19937 random_{11};
};

TEST_P(LengthsOnGpu, ZipfUnderEveryMask) {
  run_all_masks("zipf", zipf(random_), random_);
}

TEST_P(LengthsOnGpu, AllEqualUnderEveryMask) {
  run_all_masks("equal", std::vector<int>(24, 513), random_);
}

TEST_P(LengthsOnGpu, OneLongAmongShortUnderEveryMask) {
  run_all_masks("one long", one_long_among_short(random_), random_);
}

TEST_P(LengthsOnGpu, ManyEmptyUnderEveryMask) {
  run_all_masks("many empty", many_empty(random_), random_);
}

INSTANTIATE_TEST_SUITE_P(Kernels, LongAttentionOnGpu, ::testing::ValuesIn(all_kernels()), name_of);
INSTANTIATE_TEST_SUITE_P(Kernels, LengthsOnGpu, ::testing::ValuesIn(all_kernels()), name_of);

}  // namespace
}  // namespace hstu

#endif
