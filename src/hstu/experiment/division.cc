#include "hstu/experiment/division.h"

#include <vector>

#include "hstu/balance/work.h"

namespace hstu {

Division divide_batch(Balance balance, const HstuStackConfig& stack, std::span<const std::int64_t> tokens,
                      int ranks) {
  std::vector<std::int64_t> work;
  work.reserve(tokens.size());
  for (const std::int64_t n : tokens) {
    if (stack.layers == 0)
      work.push_back(n);
    else if (balance == Balance::nvidia)
      work.push_back(nvidia_layer_work(stack.layer.heads, stack.layer.head_dim, n));
    else
      work.push_back(layer_flops(stack.layer, causal_mask(n), static_cast<std::int32_t>(n)).step());
  }
  const bool equal_sizes = tokens.size() % static_cast<std::size_t>(ranks) == 0;
  const Partition slices = contiguous_partition(work.size(), ranks);
  Division division;
  if (balance == Balance::none)
    division.parts = slices;
  else if (balance == Balance::nvidia && equal_sizes)
    division.parts = equal_size_partition(work, ranks);
  else
    division.parts = balanced_partition(work, ranks);
  division.work = work_of_ranks(work, division.parts);
  division.work_of_slices = work_of_ranks(work, slices);
  division.imbalance = imbalance(division.work);
  division.imbalance_of_slices = imbalance(division.work_of_slices);
  return division;
}

DivisionRule division_of(const RunOptions& options, const Model& model, int ranks) {
  const TrainingSection& training = options.training;
  return {.piece_samples = training.batch_size,
          .part_tokens = training.micro_batch_tokens,
          .ranks = ranks,
          .divide = [balance = training.balance, stack = model.layers()](std::span<const std::int64_t> tokens,
                                                                         int n) {
            return divide_batch(balance, stack, tokens, n);
          }};
}

}  // namespace hstu
