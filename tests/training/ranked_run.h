// Whole runs over ranks: threads of this process take the places of processes.
#pragma once

#include <string>

#include "hstu/comm/thread_group.h"
#include "hstu/training/follower.h"
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
            .allowed_changes = {"training.max_steps", "tables", "ranks.shard_optimizer", "ranks.pipeline"}};
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
};

}  // namespace hstu::testing
