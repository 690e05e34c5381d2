// Runs of both models end with the same bytes, whatever the backward pass computes once more.
#include <gtest/gtest.h>

#include "support/kind_options.h"
#include "support/recompute_choices.h"
#include "training/ranked_run.h"

namespace hstu {
namespace {

class TrainingRecompute : public testing::RankedRun {
 protected:
  TrainingRecompute() {
    options_.training.max_steps = 3;
    options_.metrics.every_steps = 1;
    dlrmv4_of(options_).layers = 2;
  }

  // Parameters, rows and their optimizers' states, and the losses of all steps.
  void expect_the_same_bytes_of_every_choice(Recompute& recompute) {
    const auto name_of = [&] { return fmt::format("{} {}", next_run_++, testing::to_string(recompute)); };
    std::string kept;
    for (const Recompute& choice : testing::recompute_choices()) {
      recompute = choice;
      const std::string name = name_of();
      run(name);
      if (kept.empty()) kept = name;
      expect_same_tensors(name, kept);
      EXPECT_EQ(losses(name), losses(kept)) << name;
    }
    const std::string on_ranks = name_of();  // the last choice: everything
    run_on(3, on_ranks);
    recompute = {};
    const std::string kept_on_ranks = name_of();
    run_on(3, kept_on_ranks);
    expect_same_tensors(on_ranks, kept_on_ranks);
  }

 private:
  std::vector<double> losses(const std::string& name) const {
    std::vector<double> values;
    for (const Json& line : log(name, "train")) values.push_back(line.at("loss"));
    EXPECT_EQ(values.size(), 3u) << name;
    return values;
  }

  int next_run_ = 0;
};

TEST_F(TrainingRecompute, GivesTheSameBytes) {
  expect_the_same_bytes_of_every_choice(dlrmv4_of(options_).recompute);
}

TEST_F(TrainingRecompute, GivesTheSameBytesOfTheSecondModel) {
  RankingGrConfig& model = ranking_gr_of(options_);
  model.layers = 2;
  model.embedding_dim = model.dim = 8;
  model.head_dim = 4;
  model.head_hidden = {8};
  for (const std::int64_t candidates : {0, 2}) {  // 2: the last layer computes some rows
    model.candidates = candidates;
    expect_the_same_bytes_of_every_choice(model.recompute);
  }
}

}  // namespace
}  // namespace hstu
