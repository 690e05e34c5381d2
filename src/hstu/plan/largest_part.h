// The part of a run's batches that needs the most memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hstu/batching/batch_division.h"
#include "hstu/batching/sample_builder.h"
#include "hstu/batching/schedule.h"
#include "hstu/experiment/division.h"

namespace hstu {

struct LargestPart {
  std::vector<std::int64_t> positions;   // of its samples
  std::vector<std::int64_t> batch = {};  // of all samples of its step
  // With context groups: the positions that each rank of the part's group has of the same part.
  std::vector<std::vector<std::int64_t>> group = {};
  std::int64_t parts = 1;  // that a rank has of its step
  std::string source;      // where it was looked for, one line for people
};

// The part with the most tokens (SampleBuilder::most_tokens) among the first `steps` batches of the schedule,
// and among the first million samples. A rank of a context group, which divides the ranks, has its part of
// the group's long samples.
LargestPart largest_part(BatchSchedule schedule, const SampleBuilder& samples, const DivisionRule& rule,
                         std::int64_t steps, const ContextShare& context = {});

}  // namespace hstu
