// All elements of all parameters as one list of blocks, so that one parallel loop covers many small tensors;
// and its division among ranks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "hstu/tensor/parameter.h"

namespace hstu {

struct ParameterBlock {
  std::size_t parameter;  // its index in the list
  std::int64_t begin;     // elements [begin, end)
  std::int64_t end;
};

// Blocks of at most 32,768 elements of tensors of these sizes, in order. Theirs is constant, so sums by block
// do not depend on the number of threads.
inline std::vector<ParameterBlock> blocks_of(const std::vector<std::int64_t>& sizes) {
  constexpr std::int64_t kElements = 32768;
  std::vector<ParameterBlock> blocks;
  for (std::size_t p = 0; p < sizes.size(); ++p)
    for (std::int64_t begin = 0; begin < sizes[p]; begin += kElements)
      blocks.push_back({p, begin, std::min(sizes[p], begin + kElements)});
  return blocks;
}

inline std::vector<ParameterBlock> blocks_of(const NamedTensors& parameters) {
  std::vector<std::int64_t> sizes;
  for (const Parameter* p : parameters) sizes.push_back(p->value.size());
  return blocks_of(sizes);
}

// A part of the parameters: that of rank `rank`.
struct Shard {
  int rank = 0, ranks = 1;
};

// The shards, one after another, are all blocks, about as many elements each. No block is divided, so what is
// computed by block does not depend on the number of ranks. Blocks of one parameter are joined; a parameter
// without elements is in none.
inline std::vector<ParameterBlock> shard_of(const NamedTensors& parameters, const Shard& shard) {
  std::int64_t all = 0, before = 0;
  for (const Parameter* p : parameters) all += p->value.size();
  std::vector<ParameterBlock> pieces;
  for (const ParameterBlock& block : blocks_of(parameters)) {
    const bool is_mine =
        shard.rank * all <= before * shard.ranks && before * shard.ranks < (shard.rank + 1) * all;
    before += block.end - block.begin;
    if (!is_mine) continue;
    if (!pieces.empty() && pieces.back().parameter == block.parameter)
      pieces.back().end = block.end;
    else
      pieces.push_back(block);
  }
  return pieces;
}

}  // namespace hstu
