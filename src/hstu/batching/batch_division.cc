#include "hstu/batching/batch_division.h"

#include <algorithm>

namespace hstu {

std::span<const std::int64_t> first_part(const SampleBuilder& builder, std::span<const std::int64_t> samples,
                                         std::int64_t part_tokens) {
  if (part_tokens == 0) return samples;
  std::int64_t tokens = 0;
  std::size_t count = 0;
  for (; count < samples.size(); ++count) {
    tokens += builder.most_tokens(samples[count]);
    if (tokens > part_tokens && count > 0) break;
  }
  return samples.first(count);
}

std::optional<DividedPiece> BatchDivision::next() {
  if (!has_next()) return std::nullopt;
  const std::span rest = positions_.subspan(first_);
  const std::size_t most =
      rule_.piece_samples > 0 ? static_cast<std::size_t>(rule_.piece_samples) : rest.size();
  const std::span piece = rest.first(std::min(most, rest.size()));
  DividedPiece divided;
  if (rule_.divide && rule_.ranks > 1) {
    std::vector<std::int64_t> tokens;
    tokens.reserve(piece.size());
    for (const std::int64_t position : piece) tokens.push_back(builder_.most_tokens(position));
    divided.begin = Clock::now();
    divided.division = rule_.divide(tokens, rule_.ranks);
    divided.end = Clock::now();
  } else {
    divided.division.parts = contiguous_partition(piece.size(), rule_.ranks);
  }
  for (const std::vector<std::int32_t>& samples : divided.division.parts) {
    SamplesOfRank& of_rank = divided.ranks.emplace_back();
    of_rank.positions.reserve(samples.size());
    of_rank.places.reserve(samples.size());
    for (const std::int32_t sample : samples) {
      of_rank.positions.push_back(piece[static_cast<std::size_t>(sample)]);
      of_rank.places.push_back(static_cast<std::int64_t>(first_) + sample);
    }
    std::int64_t parts = 0;
    for (std::span<const std::int64_t> left = of_rank.positions; !left.empty(); ++parts)
      left = left.subspan(first_part(builder_, left, rule_.part_tokens).size());
    divided.parts = std::max(divided.parts, parts);
  }
  first_ += piece.size();
  return divided;
}

}  // namespace hstu
