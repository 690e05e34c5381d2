// Writes ten runs with scripted logs, for tests/mlperf/official_test.py:
//   mlperf_scripted_runs FOLDER BATCH LAST
// FOLDER/0 ... FOLDER/9, each of which reaches the target at evaluation LAST.
#include <cstdlib>

#include "mlperf/scripted_run.h"

int main(int argc, char** argv) {
  using namespace hstu;
  if (argc != 4) return 2;
  for (std::uint64_t run = 0; run < 10; ++run)
    testing::write_scripted_run(Path(argv[1]) / std::to_string(run),
                                testing::benchmark_options(std::atoll(argv[2]), 1000 + run),
                                std::atoll(argv[3]));
}
