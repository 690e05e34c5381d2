// A small run whose memory is planned.
#pragma once

#include "support/kind_options.h"
#include "training/run_fixture.h"

namespace hstu::testing {

class MemoryPlanTest : public RunTest {
 protected:
  MemoryPlanTest() : RunTest(12, 40) {
    options_.data.options.history_length = 30;
    dlrmv4_of(options_).max_sequence = 32;
    dlrmv4_of(options_).positions = 32;
    options_.training.batch_size = 24;
  }
  void use_ranking_gr() {
    ranking_gr_of(options_).dim = ranking_gr_of(options_).embedding_dim = 16;
    ranking_gr_of(options_).head_dim = 8;
    ranking_gr_of(options_).head_hidden = {16};
  }
};

}  // namespace hstu::testing
