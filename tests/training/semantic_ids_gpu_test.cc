// Models of semantic ids, trained and evaluated on a GPU: the host's numbers up to rounding, and the same
// bytes every time.
#include <cmath>

#include <gtest/gtest.h>

#include "hstu/device/device.h"
#include "training/semantic_ids_run.h"

namespace hstu::testing {
namespace {

class SemanticIdsOnGpu : public SemanticIdsRun {
 protected:
  SemanticIdsOnGpu() { options_.device = "cuda"; }
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU";
  }
  // A form of the model, by words.
  std::string use(CodeBlocks block, CodeTargets targets, CodePositions positions, CodeHeads head) {
    SemanticIdsConfig& model = semantic_ids_of(options_);
    model.block = block, model.targets = targets, model.positions = positions, model.head = head;
    options_.data.options.anchor_stride = targets == CodeTargets::candidate ? 1 : 0;
    return fmt::format("{} {} {} {}", word_of(kCodeBlocks, block), word_of(kCodeTargets, targets),
                       word_of(kCodePositions, positions), word_of(kCodeHeads, head));
  }
  // Calls body(name) for forms that have each choice at least once.
  template <typename Body>
  void for_forms(const Body& body) {
    body(use(CodeBlocks::softmax, CodeTargets::every_item, CodePositions::learned, CodeHeads::separate));
    body(use(CodeBlocks::softmax, CodeTargets::candidate, CodePositions::rotary, CodeHeads::shared));
    body(use(CodeBlocks::softmax, CodeTargets::every_item, CodePositions::rotary, CodeHeads::shared));
    body(use(CodeBlocks::hstu, CodeTargets::every_item, CodePositions::none, CodeHeads::separate));
  }
};

TEST_F(SemanticIdsOnGpu, EveryFormIsTheHosts) {
  options_.evaluation.every_data_fraction = 0;
  for_forms([&](const std::string& name) {
    options_.device = "host";
    run(name + " host");
    options_.device = "cuda";
    run(name + " gpu");
    expect_losses_near(name + " gpu", name + " host", 1e-3, 10);
  });
}

TEST_F(SemanticIdsOnGpu, BFloat16FollowsFp32) {
  options_.evaluation.every_data_fraction = 0;
  for_forms([&](const std::string& name) {
    options_.precision = Precision::fp32;
    run(name + " fp32");
    options_.precision = Precision::bf16;
    run(name + " bf16");
    expect_losses_near(name + " bf16", name + " fp32", 0.02);
  });
}

TEST_F(SemanticIdsOnGpu, TwoRunsAndAResumedOneHaveTheSameBytes) {
  for (const Precision precision : {Precision::fp32, Precision::bf16}) {
    options_.precision = precision;
    for_forms([&](const std::string& form) {
      const std::string name = form + (precision == Precision::fp32 ? " fp32" : " bf16");
      run(name);
      run(name + " again");
      expect_same_run(name, name + " again");
      interrupt_and_resume(name + " parts", "step.end", 5);
      expect_same_run(name, name + " parts");
    });
  }
}

// Searches on the GPU find what searches on the host find.
TEST_F(SemanticIdsOnGpu, EvaluatesACheckpointAsTheHostDoes) {
  options_.evaluation.every_data_fraction = 0;
  options_.training.epochs = 12;
  for_forms([&](const std::string& name) {
    run(name);
    const auto evaluated = [&](const std::string& device) {
      RunOptions options = options_;
      options.device = device;
      Experiment experiment(options);
      load_run(Checkpoint(find_checkpoint(open_run_folder(folder_ / name).checkpoints(), -1)), experiment);
      return *Evaluator(experiment).run();
    };
    const EvaluationResult gpu = evaluated("cuda"), host = evaluated("host");
    EXPECT_GT(*host.find("hr@10"), 0.3) << name;
    // Ranks differ at most where two log-probabilities are equal up to rounding: those of a user in 100.
    for (const char* const metric : {"mrr", "ndcg@10", "hr@1", "hr@10"})
      EXPECT_NEAR(*gpu.find(metric), *host.find(metric), 0.011) << name << " " << metric;
  });
}

}  // namespace
}  // namespace hstu::testing
