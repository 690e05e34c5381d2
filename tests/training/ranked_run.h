// Whole runs over ranks: threads of this process take the places of processes.
#pragma once

#include <map>
#include <string>

#include "hstu/comm/thread_group.h"
#include "hstu/training/train.h"
#include "training/run_fixture.h"

namespace hstu::testing {

class RankedRun : public RunTest {
 protected:
  RankedRun() {
    options_.training.batch_size = 7;
    options_.training.max_steps = 12;
    options_.tables.ranks = TableRanks::split;  // what auto would not do with small tables
  }

  TrainRequest request(const std::string& name, bool resume) const {
    return {.options = options_,
            .folder = open_run_folder(folder_ / name),
            .version = "test",
            .resume = resume,
            .allowed_changes = {"training.max_steps", "tables", "ranks.shard_optimizer", "ranks.pipeline",
                                "ranks.tensor"}};
  }
  TrainResult run_on(int ranks, const std::string& name, bool resume = false) {
    if (!resume) create_run_folder(folder_ / name, options_);
    TrainResult result;
    run_ranks(ranks, [&](Communicator& comm) {
      if (comm.rank() > 0) return follow(request(name, resume), comm);
      result = train(request(name, resume), comm);
    });
    return result;
  }

  // The tensors of the newest checkpoint, by file.
  std::map<std::string, std::string> tensors(const std::string& name) const {
    std::map<std::string, std::string> files = newest_checkpoint(folder_ / name);
    std::erase_if(files, [](const auto& file) { return !file.first.ends_with(".safetensors"); });
    return files;
  }
  // Without those of the metrics of training, which an evaluation at the end of a part of a run changes.
  std::map<std::string, std::string> learner_tensors(const std::string& name) const {
    std::map<std::string, std::string> files = tensors(name);
    std::erase_if(files, [](const auto& file) { return file.first.starts_with("metrics"); });
    return files;
  }
  void expect_same_tensors(const std::string& name, const std::string& expected_name) const {
    const auto found = tensors(name), expected = tensors(expected_name);
    EXPECT_EQ(found.size(), expected.size()) << name;
    for (const auto& [file, bytes] : expected)
      EXPECT_TRUE(found.contains(file) && found.at(file) == bytes) << name << " " << file;
  }
  // Runs of three ranks in every pipeline, whose names begin with `kind`.
  void expect_same_in_every_pipeline(const std::string& kind) {
    for (const auto& [word, pipeline] : kPipelines) {
      options_.ranks.pipeline = pipeline;
      const std::string name = fmt::format("{} {}", kind, word);
      run_on(3, name);
      expect_same_tensors(name, kind + " plain");
    }
  }
};

}  // namespace hstu::testing
