#include "hstu/experiment/division.h"

#include <vector>

#include "hstu/balance/shared_work.h"
#include "hstu/balance/work.h"
#include "hstu/experiment/divided_heads.h"

namespace hstu {

ContextShare context_share(const RunOptions& options, int ranks) {
  const int context = context_ranks(options, ranks), tensor = tensor_ranks(options, ranks);
  if (ranks % (context * tensor) != 0) return {};
  return {context, options.ranks.context_above, tensor};
}

Division divide_batch(Balance balance, const HstuStackConfig& stack, std::span<const std::int64_t> tokens,
                      int ranks, const ContextShare& context) {
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
  SharedWork shared{.tensor = context.tensor, .context = context.ranks};
  for (const std::int64_t n : tokens) shared.is_shared.push_back(n > context.above ? 1 : 0);
  const bool equal_sizes = tokens.size() % static_cast<std::size_t>(ranks) == 0;
  const Partition slices = contiguous_partition(work.size(), ranks);
  Division division;
  if (balance == Balance::none)
    division.parts = slices;
  else if (balance == Balance::nvidia && equal_sizes)
    division.parts = equal_size_partition(work, ranks);
  else if (shared.any())
    division.parts = balanced_partition(work, ranks, shared);
  else
    division.parts = balanced_partition(work, ranks);
  division.work = work_of_ranks(work, division.parts, shared);
  division.work_of_slices = work_of_ranks(work, slices, shared);
  division.imbalance = imbalance(division.work);
  division.imbalance_of_slices = imbalance(division.work_of_slices);
  return division;
}

DivisionRule division_of(const RunOptions& options, const Model& model, int ranks) {
  const TrainingSection& training = options.training;
  return {.piece_samples = training.batch_size,
          .part_tokens = training.micro_batch_tokens,
          .ranks = ranks,
          .divide = [balance = training.balance, stack = model.layers(),
                     context = context_share(options, ranks)](std::span<const std::int64_t> tokens, int n) {
            return divide_batch(balance, stack, tokens, n, context);
          }};
}

}  // namespace hstu
