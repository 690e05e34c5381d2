#include "hstu/experiment/divided_heads.h"

#include <string>

#include "hstu/base/error.h"
#include "hstu/task/kind.h"

namespace hstu {

int tensor_ranks(const RunOptions& options, int ranks) {
  return ranks == 1 ? 1 : static_cast<int>(options.ranks.tensor);
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

std::unique_ptr<DividedRanks> divide_ranks(const RunOptions& options, const Group& world) {
  const int tensor = tensor_ranks(options, world.size());
  if (tensor == 1) return nullptr;
  return std::make_unique<DividedRanks>(world, GroupSizes{.tensor = tensor, .context = 1});
}

}  // namespace hstu
