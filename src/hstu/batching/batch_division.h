// How a global batch becomes pieces, the samples of each rank, and parts. Loaders and plans divide by it
// alone.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "hstu/balance/partition.h"
#include "hstu/base/clock.h"
#include "hstu/batching/sample_builder.h"

namespace hstu {

// Divides samples, of which each has at most so many tokens, among ranks.
using DivideSamples = std::function<Division(std::span<const std::int64_t> tokens, int ranks)>;

struct DivisionRule {
  // A global batch is computed in pieces of at most this many samples of all ranks together; 0: one piece.
  std::int64_t piece_samples = 0;
  // A rank's samples of a piece are divided into parts of at most this many tokens by most_tokens(), but at
  // least one sample; 0: one part.
  std::int64_t part_tokens = 0;
  int ranks = 1;
  DivideSamples divide = {};  // not set: contiguous_partition()
};

// The first part of `samples` (at least one, if there is one) by DivisionRule::part_tokens.
std::span<const std::int64_t> first_part(const SampleBuilder& builder, std::span<const std::int64_t> samples,
                                         std::int64_t part_tokens);

// The samples of one rank: their events, and their places in the global batch, ascending.
struct SamplesOfRank {
  std::vector<std::int64_t> positions, places;
};

struct DividedPiece {
  std::vector<SamplesOfRank> ranks;  // a rank may have none
  // Of every rank, at least one: ranks whose samples are longer need more, and the others get as many, some
  // empty, because tables that are split over ranks are read together.
  std::int64_t parts = 1;
  Division division;                       // its figures are those of DivisionRule::divide
  Clock::time_point begin = {}, end = {};  // of divide(); equal where it is not set
};

class BatchDivision {
 public:
  // `positions` of the samples and the builder must outlive it.
  BatchDivision(std::span<const std::int64_t> positions, const DivisionRule& rule,
                const SampleBuilder& builder)
      : positions_(positions), rule_(rule), builder_(builder) {}

  // Empty after the last piece; of a batch without samples at once.
  std::optional<DividedPiece> next();
  bool has_next() const { return first_ < positions_.size(); }

 private:
  std::span<const std::int64_t> positions_;
  DivisionRule rule_;
  const SampleBuilder& builder_;
  std::size_t first_ = 0;  // of the next piece
};

}  // namespace hstu
