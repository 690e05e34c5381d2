// Models that retrieve, over ranks on GPUs: one after another on one GPU with messages through the host, and
// each on a GPU of its own with NCCL where there are two.
#include <gtest/gtest.h>

#include "hstu/device/device.h"
#include "training/retrieval_run.h"

namespace hstu::testing {
namespace {

class RetrievalOverGpus : public RetrievalRun {
 protected:
  RetrievalOverGpus() {
    options_.device = "cuda";
    options_.ranks.gpu_messages = GpuMessages::host;
    options_.training.epochs = 2;
  }
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU";
  }
  // The losses of every step, and ranks among items that every rank has a part of.
  void expect_those_of(const std::string& alone, const TrainResult& expected, const std::string& name,
                       const TrainResult& result) const {
    expect_losses_near(name, alone, 1e-4);
    EXPECT_EQ(result.evaluation->model.count("n"), expected.evaluation->model.count("n")) << name;
    for (const char* const metric : {"ndcg@10", "mrr"})
      EXPECT_NEAR(*result.evaluation->find(metric), *expected.evaluation->find(metric), 0.02) << name;
  }
  // With and without NCCL, where there is a GPU for each of two ranks.
  void expect_nccl_to_give_the_bits_of(const std::string& name) {
    if (cuda_device_count() < 2) return;
    options_.ranks.gpu_messages = GpuMessages::nccl;
    run_on(2, name + " nccl");
    options_.ranks.gpu_messages = GpuMessages::host;
    expect_same_tensors(name + " nccl", name);
  }
};

TEST_F(RetrievalOverGpus, EveryLossIsThatOfOneRank) {
  for (const auto& [word, kind] : kRetrievalLosses) {
    retrieval_of(options_).loss.kind = kind;
    retrieval_of(options_).loss.negatives = 16;
    const std::string name(word);
    const TrainResult alone = run_on(1, name);
    expect_those_of(name, alone, name + " 2", run_on(2, name + " 2"));
    expect_nccl_to_give_the_bits_of(name + " 2");
  }
}

TEST_F(RetrievalOverGpus, CopiesAndAttributesTrainAsOneRankDoes) {
  const TrainResult alone = run_on(1, "alone");
  expect_those_of("alone", alone, "3", run_on(3, "3"));
  options_.tables.ranks = TableRanks::copy;
  expect_those_of("alone", alone, "copies", run_on(2, "copies"));
  expect_nccl_to_give_the_bits_of("copies");
  options_.tables.ranks = TableRanks::split;
  give_attributes();
  const TrainResult attributes = run_on(1, "with attributes");
  expect_those_of("with attributes", attributes, "with attributes 2", run_on(2, "with attributes 2"));
  expect_nccl_to_give_the_bits_of("with attributes 2");
}

}  // namespace
}  // namespace hstu::testing
