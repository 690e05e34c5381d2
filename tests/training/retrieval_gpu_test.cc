// Models that retrieve, trained and evaluated on a GPU: the host's numbers up to rounding, and the same bytes
// every time.
#include <cmath>

#include <gtest/gtest.h>

#include "hstu/device/device.h"
#include "training/retrieval_run.h"

namespace hstu::testing {
namespace {

class RetrievalOnGpu : public RetrievalRun {
 protected:
  RetrievalOnGpu() {
    options_.device = "cuda";
    retrieval_of(options_).loss.negatives = 16;
  }
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU";
  }
  // Without a relative bias, of which not every kernel for GPUs has a form.
  void use(SequencePreset preset, RetrievalLossKind loss) {
    RetrievalConfig& model = retrieval_of(options_);
    model.preset = preset;
    model.position_bias = model.time_bias = false;
    model.loss.kind = loss;
  }
  void expect_host_losses(const std::string& name) {
    options_.device = "host";
    run(name + " host");
    options_.device = "cuda";
    run(name + " gpu");
    expect_losses_near(name + " gpu", name + " host", 1e-3, 20);
  }
};

TEST_F(RetrievalOnGpu, EveryLossIsTheHosts) {
  options_.training.epochs = 5;
  for (const auto& [word, kind] : kRetrievalLosses) {
    use(SequencePreset::meta, kind);
    expect_host_losses(std::string(word));
  }
}

TEST_F(RetrievalOnGpu, EveryPresetIsTheHosts) {
  options_.training.epochs = 5;
  for (const SequencePreset preset : {SequencePreset::nvidia, SequencePreset::sasrec}) {
    use(preset, RetrievalLossKind::full);
    expect_host_losses(std::string(word_of(kSequencePresets, preset)));
  }
}

TEST_F(RetrievalOnGpu, ItemsWithAttributesAreTheHosts) {
  give_attributes();
  options_.training.epochs = 5;
  for (const RetrievalLossKind kind : {RetrievalLossKind::full, RetrievalLossKind::mixed}) {
    use(SequencePreset::meta, kind);
    const std::string name(word_of(kRetrievalLosses, kind));
    expect_host_losses(name);
    const auto mrr = [&](const std::string& run) { return log(run, "eval").back().at("mrr").get<double>(); };
    EXPECT_NEAR(mrr(name + " gpu"), mrr(name + " host"), 0.05);
  }
}

TEST_F(RetrievalOnGpu, ContextsAreTheHosts) {
  options_.features.context = {{"user", {"user"}, 0, false}};
  options_.training.epochs = 5;
  for (const auto& [word, preset] : kSequencePresets) {
    use(preset, RetrievalLossKind::full);
    expect_host_losses("contexts of " + std::string(word));
  }
}

TEST_F(RetrievalOnGpu, TwoRunsHaveTheSameBytes) {
  for (const Precision precision : {Precision::fp32, Precision::bf16}) {
    for (const auto& [word, kind] : kRetrievalLosses) {
      use(precision == Precision::fp32 ? SequencePreset::sasrec : SequencePreset::meta, kind);
      options_.precision = precision;
      const std::string name = std::string(word) + (precision == Precision::fp32 ? " fp32" : " bf16");
      run(name);
      run(name + " again");
      expect_same_run(name, name + " again");
    }
  }
}

// Interrupted between checkpoints and resumed: models, moments of rows and of weights,
// draws and logs are those of a run that was not.
TEST_F(RetrievalOnGpu, ResumesToTheSameBytes) {
  options_.tables.by_name["item"].updates = UpdatedRows::all;
  const auto expect_the_same = [&](SequencePreset preset, RetrievalLossKind loss, Precision precision) {
    use(preset, loss);
    options_.precision = precision;
    const std::string name =
        std::string(word_of(kSequencePresets, preset)) + " " + std::string(word_of(kRetrievalLosses, loss));
    run(name);
    for (const int step : {2, 5}) {
      const std::string parts = name + std::to_string(step);
      interrupt_and_resume(parts, "step.end", step);
      expect_same_run(name, parts);
    }
  };
  expect_the_same(SequencePreset::meta, RetrievalLossKind::full, Precision::bf16);
  expect_the_same(SequencePreset::nvidia, RetrievalLossKind::batch_uniform, Precision::fp32);
  expect_the_same(SequencePreset::sasrec, RetrievalLossKind::mixed, Precision::fp32);
  retrieval_of(options_).position_bias = retrieval_of(options_).time_bias = true;
  options_.precision = Precision::fp32;
  retrieval_of(options_).preset = SequencePreset::meta;
  retrieval_of(options_).loss.kind = RetrievalLossKind::uniform;
  run("bias");
  interrupt_and_resume("bias parts", "step.end", 4);
  expect_same_run("bias", "bias parts");
}

TEST_F(RetrievalOnGpu, EvaluatesACheckpointAsTheHostDoes) {
  use(SequencePreset::sasrec, RetrievalLossKind::full);
  options_.training.epochs = 12;
  run("run");
  const auto evaluated = [&](const std::string& device) {
    RunOptions options = options_;
    options.device = device;
    Experiment experiment(options);
    load_run(Checkpoint(find_checkpoint(open_run_folder(folder_ / "run").checkpoints(), -1)), experiment);
    return *Evaluator(experiment).run();
  };
  const EvaluationResult gpu = evaluated("cuda"), host = evaluated("host");
  // Ranks differ at most where two scores are equal up to rounding, which none are here.
  for (const char* const metric : {"mrr", "ndcg@10", "hr@1", "hr@10"})
    EXPECT_NEAR(*gpu.find(metric), *host.find(metric), 1e-12) << metric;
}

}  // namespace
}  // namespace hstu::testing
