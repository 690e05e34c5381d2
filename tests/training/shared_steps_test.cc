// When the ranks of a run tell each other of losses, counts and scores.
#include <array>
#include <map>
#include <string>

#include "training/ranked_run.h"

namespace hstu::testing {
namespace {

// Counts the collectives of each stage.
class CountByStage : public CollectiveTrace {
 public:
  explicit CountByStage(const Communicator& comm) : comm_(comm) {}
  void begin(std::string_view /*name*/, std::int64_t /*bytes*/) override {
    ++counts[std::string(comm_.activity().stage)];
  }
  void end() override {}

  std::map<std::string, std::int64_t> counts;

 private:
  const Communicator& comm_;
};

TEST_F(RankedRun, LossCountsAndScoresCrossRanksAtLinesOfTheLogAlone) {
  options_.metrics.every_steps = 4;
  create_run_folder(folder_ / "run", options_);
  std::array<std::map<std::string, std::int64_t>, 3> counts;
  run_ranks(3, [&](Communicator& comm) {
    CountByStage trace(comm);
    comm.set_trace(&trace);
    if (comm.rank() > 0)
      follow(request("run", false), comm);
    else
      train(request("run", false), comm);
    comm.set_trace(nullptr);
    counts[static_cast<std::size_t>(comm.rank())] = trace.counts;
  });
  EXPECT_EQ(counts[0]["check of the update"], 12);
  EXPECT_EQ(counts[0]["figures"] % 3, 0);  // of three lines
  EXPECT_LE(counts[0]["figures"], 3 * 10);
  EXPECT_EQ(counts[0].count("predictions"), 0u);
  EXPECT_EQ(counts[1], counts[0]);
  EXPECT_EQ(counts[2], counts[0]);
}

// Also where an evaluation or a save is between two lines. One rank shares nothing.
TEST_F(RankedRun, MetricsDoNotDependOnWhenTheRanksShareThem) {
  options_.metrics.every_steps = 1;
  options_.metrics.window_samples = 10;  // of batches of 7: fewer than the ranks have between two lines
  options_.checkpoint.every_steps = 5;
  options_.evaluation.every_data_fraction = 0.2;
  run_on(3, "each");
  const std::vector<Json> each = log("each", "train"), evaluations = log("each", "eval");
  options_.metrics.every_steps = 6;
  run_on(3, "lines");
  EXPECT_EQ(learner_tensors("lines"), learner_tensors("each"));
  const std::vector<Json> lines = log("lines", "train"), of_lines = log("lines", "eval");
  ASSERT_EQ(lines.size(), 2u);
  run_on(1, "alone");
  EXPECT_EQ(log("alone", "train").back().at("lifetime_n"), lines.back().at("lifetime_n"));
  for (std::size_t i = 0; i < lines.size(); ++i) {
    double loss = 0;
    for (std::size_t step = 6 * i; step < 6 * i + 6; ++step) loss += each[step].at("loss").get<double>();
    EXPECT_EQ(lines[i].at("loss"), loss / 6);
    for (const auto& [key, value] : each[6 * i + 5].items()) {
      const bool is_shared = key.starts_with("window_") || key.starts_with("lifetime_") || key == "samples";
      EXPECT_TRUE(!is_shared || lines[i].at(key) == value) << key << " " << value << " " << lines[i].at(key);
    }
  }
  ASSERT_EQ(of_lines.size(), evaluations.size());
  for (std::size_t i = 0; i < of_lines.size(); ++i) {
    EXPECT_EQ(of_lines[i].at("samples"), evaluations[i].at("samples"));
    EXPECT_EQ(of_lines[i].at("ne"), evaluations[i].at("ne"));
  }
}

}  // namespace
}  // namespace hstu::testing
