// Softmax attention on tensor cores against the CPU form. The tests skip on machines without a GPU.
#ifdef HSTU_WITH_CUDA

#include <cstring>

#include "attention/device_kernels.h"

namespace hstu {
namespace {

class SoftmaxOnGpu : public OnGpu {
 protected:
  static DeviceCase softmax(DeviceCase c) {
    c.score = ScoreFunction::softmax;
    c.deterministic = true;
    return with_kernels(c);
  }
  static void run(const DeviceCase& c) {
    const DeviceCase all = softmax(c);
    if (all.type == AttentionType::fp16)
      run_and_compare<__half>(all);
    else
      run_and_compare<__nv_bfloat16>(all);
  }
};

const std::vector<int> kSoftmaxLengths{1, 2, 0, 63, 64, 65, 127, 7, 128, 129, 0, 191, 193, 255, 257, 300};
// On average long enough for tiles that two blocks share.
const std::vector<int> kLongerSoftmax{255, 256, 257, 1, 320, 511, 512, 513, 0, 639, 769};

TEST_P(SoftmaxOnGpu, CausalOfAnyLength) {
  run({.name = "softmax causal", .lengths = kSoftmaxLengths});
  run({.name = "softmax causal, longer", .lengths = kLongerSoftmax});
  run({.name = "softmax causal, long", .lengths = {1500}, .heads = 1});
}

TEST_P(SoftmaxOnGpu, Half) {
  run({.name = "softmax fp16", .lengths = kSoftmaxLengths, .type = AttentionType::fp16});
  run({.name = "softmax fp16, longer", .lengths = kLongerSoftmax, .type = AttentionType::fp16});
}

// Trap: a key beyond the end has the score 0, and e^0 is not 0.
TEST_P(SoftmaxOnGpu, FullAndLocalWindows) {
  for (const AttentionMask mask :
       {AttentionMask{-1, -1}, {0, 0}, {1, 0}, {63, 0}, {64, 0}, {100, 50}, {-1, 20}, {70, -1}}) {
    run({.name = fmt::format("softmax window {} {}", mask.left, mask.right),
         .lengths = {1, 64, 130, 333},
         .mask = mask});
    run({.name = fmt::format("softmax window {} {}, longer", mask.left, mask.right),
         .lengths = {520, 257, 333},
         .mask = mask});
  }
}

// Rows of a block whose first keys, or whose first blocks of keys, they do not see.
TEST_P(SoftmaxOnGpu, ContextsAndTargets) {
  for (const AttentionMask mask :
       {AttentionMask{-1, 0, 1}, {-1, 0, 3}, {-1, 0, 16}, {50, 0, 7}, {-1, -1, 5}}) {
    run({.name = fmt::format("softmax, targets {} {} {}", mask.left, mask.right, mask.target_group),
         .lengths = {1, 20, 64, 0, 130, 200, 333, 257, 129},
         .mask = mask,
         .contexts = {1, 3, 0, 5, 70, 200, 6, 129, 8},
         .targets = {1, 4, 64, 2, 0, 100, 130, 10, 300}});
    run({.name = fmt::format("softmax, targets {} {} {}, longer", mask.left, mask.right, mask.target_group),
         .lengths = {640, 20, 333, 512, 300},
         .mask = mask,
         .contexts = {3, 1, 129, 5, 260},
         .targets = {100, 4, 10, 280, 0}});
  }
}

TEST_P(SoftmaxOnGpu, HiddenKeys) {
  for (const int period : {1, 2, 5, 30}) {
    for (const std::vector<int>& lengths : {std::vector<int>{1, 20, 64, 0, 130, 200}, {333, 520}}) {
      AttentionMask causal;
      causal.hidden_period = period, causal.hidden_phase = period / 2;
      run({.name = fmt::format("softmax, hidden {}", period), .lengths = lengths, .mask = causal});
      AttentionMask targets{.left = 40, .right = 0, .target_group = 4};
      targets.hidden_period = period, targets.hidden_phase = period - 1;
      const std::vector<int> three(lengths.size(), 3);
      run({.name = fmt::format("softmax, hidden {}, contexts and targets", period),
           .lengths = lengths,
           .mask = targets,
           .contexts = three,
           .targets = three});
    }
  }
}

// Scores whose largest grows from block to block by more than the kernels leave in the weights, and scores of
// which e^score is no number.
TEST_P(SoftmaxOnGpu, LargeAndSmallScores) {
  for (const std::vector<int>& lengths : {std::vector<int>{65, 200}, {65, 500}}) {
    run({.name = "softmax, scores to 20", .lengths = lengths, .magnitude = 2.2});
    run({.name = "softmax, scores to 90", .lengths = lengths, .magnitude = 5});
    run({.name = "softmax, small", .lengths = lengths, .magnitude = 1e-10});
    run({.name = "softmax, scales", .lengths = lengths, .per_sample_scale = true});
  }
}

TEST_P(SoftmaxOnGpu, NeighboursThatHoldNanDoNotLeak) {
  run({.name = "softmax poison", .lengths = {33, 64, 1, 100, 31, 200, 90, 5}, .poisoned = {1, 3, 5, 7}});
  run({.name = "softmax poison, longer", .lengths = {333, 400, 257, 290, 513, 64}, .poisoned = {1, 3, 5}});
}

// The names of the rows differ from their numbers, and from head to head so do the draws.
TEST_P(SoftmaxOnGpu, Dropout) {
  if (GetParam().kernel != AttentionKernel::hopper) GTEST_SKIP() << "computed on Hopper alone";
  for (const double rate : {0.1, 0.5}) {
    for (const std::vector<int>& lengths : {kSoftmaxLengths, kLongerSoftmax}) {
      const auto name = [&](const char* what) {
        return fmt::format("softmax, dropout {} {}, {} samples", rate, what, lengths.size());
      };
      run({.name = name("causal"), .lengths = lengths, .dropout = rate});
      run({.name = name("fp16"), .lengths = lengths, .type = AttentionType::fp16, .dropout = rate});
      run({.name = name("full"), .lengths = lengths, .mask = {-1, -1}, .dropout = rate});
      run({.name = name("window"), .lengths = lengths, .mask = {70, 20}, .dropout = rate});
      const std::vector<int> three(lengths.size(), 3), nine(lengths.size(), 9);
      AttentionMask hidden{.left = 200, .right = 0, .target_group = 4};
      hidden.hidden_period = 5, hidden.hidden_phase = 2;
      run({.name = name("contexts, targets, hidden keys"),
           .lengths = lengths,
           .mask = hidden,
           .contexts = three,
           .targets = nine,
           .per_sample_scale = true,
           .dropout = rate});
    }
    run({.name = fmt::format("softmax, dropout {}, poison", rate),
         .lengths = {33, 64, 1, 100, 31, 200, 90, 5},
         .poisoned = {1, 3, 5, 7},
         .dropout = rate});
  }
}

TEST_P(SoftmaxOnGpu, NothingToDo) {
  run({.name = "softmax, empty samples", .lengths = {0, 0, 0}});
  run({.name = "softmax, no samples", .lengths = {}});
}

TEST_P(SoftmaxOnGpu, TheSameBitsEveryTime) {
  std::vector<int> lengths;
  lengths.reserve(40);
  for (int i = 0; i < 40; ++i) lengths.push_back(37 * i % 1100);
  for (const double dropout : {0.0, 0.2}) {
    if (dropout > 0 && GetParam().kernel != AttentionKernel::hopper) continue;
    const HostBatch<__nv_bfloat16> host(
        softmax({.name = "softmax bits", .lengths = lengths, .heads = 4, .dropout = dropout}));
    DeviceBatch<__nv_bfloat16> device(host);
    device.run();
    const std::vector<__nv_bfloat16> once = device.outputs();
    for (int i = 0; i < 20; ++i) {
      device.forget_outputs();
      device.run();
      const std::vector<__nv_bfloat16> again = device.outputs();
      ASSERT_EQ(std::memcmp(once.data(), again.data(), once.size() * sizeof(__nv_bfloat16)), 0)
          << i << ", dropout " << dropout;
    }
  }
}

std::vector<Kernels> softmax_kernels() {
  std::vector<Kernels> all;
  for (const Kernels& kernels : all_kernels())
    if (kernels.head_dim <= 128) all.push_back(kernels);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Kernels, SoftmaxOnGpu, ::testing::ValuesIn(softmax_kernels()), name_of);

}  // namespace
}  // namespace hstu

#endif  // HSTU_WITH_CUDA
