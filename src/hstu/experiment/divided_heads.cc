#include "hstu/experiment/divided_heads.h"

#include <algorithm>
#include <string>

#include "hstu/base/error.h"
#include "hstu/task/kind.h"

namespace hstu {

int tensor_ranks(const RunOptions& options, int ranks) {
  return ranks == 1 ? 1 : static_cast<int>(options.ranks.tensor);
}

int context_ranks(const RunOptions& options, int ranks) {
  return ranks == 1 ? 1 : std::max(1, options.ranks.context);
}

void check_tensor_ranks(const RunOptions& options, int ranks) {
  const std::int64_t tensor = options.ranks.tensor;
  if (ranks % tensor != 0)
    fail_usage(
        "ranks.tensor = {0}, but {1} {2} cannot form groups of {0}: start a multiple of {0} ranks (--ranks "
        "{0}), "
        "or set ranks.tensor = 1",
        tensor, ranks, ranks == 1 ? "rank" : "ranks");
}

void divide_heads(const RunOptions& options, Model& model, int rank, int ranks) {
  const int tensor = tensor_ranks(options, ranks);
  if (tensor == 1) return;
  check_tensor_ranks(options, ranks);
  if (const std::string why = model.why_whole_heads(); !why.empty())
    fail_usage("ranks.tensor = {}, but model.kind = \"{}\": {}: set ranks.tensor = 1", tensor,
               options.model.kind().name, why);
  const std::int64_t heads = model.layers().layer.heads;
  if (heads % tensor != 0)
    fail_usage("ranks.tensor = {0} does not divide model.heads = {1}: set a divisor of {1}, or 1", tensor,
               heads);
  model.parameters().divide(rank % tensor, tensor);
}

namespace {

// Layers whose ranks share the tokens of long samples.
void check_context_ranks(int context, int tensor, const Model& model, int ranks) {
  if (ranks % (context * tensor) != 0)
    fail_usage(
        "ranks.context = {}{} does not divide {} ranks: start a multiple of {}, or set ranks.context = 1",
        context, tensor == 1 ? "" : fmt::format(" times ranks.tensor = {}", tensor), ranks, context * tensor);
  if (model.layers().layers == 0)
    fail_usage(
        "ranks.context = {}: only HSTU layers share the tokens of a sample: set ranks.context = 1, or "
        "model keys that give HSTU layers",
        context);
}

}  // namespace

std::unique_ptr<DividedRanks> divide_ranks(const RunOptions& options, const Model& model,
                                           const Group& world) {
  const int tensor = tensor_ranks(options, world.size());
  const int context = context_ranks(options, world.size());
  if (tensor == 1 && context == 1) return nullptr;
  if (context > 1) check_context_ranks(context, tensor, model, world.size());
  return std::make_unique<DividedRanks>(world, GroupSizes{.tensor = tensor, .context = context});
}

}  // namespace hstu
