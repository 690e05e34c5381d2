// The part of a run's batches that needs the most memory.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "hstu/balance/partition.h"
#include "hstu/batching/sample_builder.h"
#include "hstu/batching/schedule.h"
#include "hstu/options/options.h"

namespace hstu {

struct LargestPart {
  std::vector<std::int64_t> positions;  // of its samples
  std::string source;                   // where it was looked for, one line for people
};

// The part with the most tokens (SampleBuilder::most_tokens) among the first `steps` batches of the schedule,
// and among the first million samples. `divide`: among ranks (LoaderOptions::divide); null: there is one.
using DivideBatch = std::function<Division(std::span<const std::int64_t> tokens)>;
LargestPart largest_part(BatchSchedule schedule, const SampleBuilder& samples,
                         const TrainingSection& training, std::int64_t steps, const DivideBatch& divide = {});

}  // namespace hstu
