// All elements of all parameters as one list of blocks, so that one parallel loop covers many small tensors.
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

// Blocks of at most 32,768 elements, in order. The size is constant, so sums by block do not depend on the
// number of threads.
inline std::vector<ParameterBlock> blocks_of(const NamedTensors& parameters) {
  constexpr std::int64_t kElements = 32768;
  std::vector<ParameterBlock> blocks;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    const std::int64_t size = parameters[p]->value.size();
    for (std::int64_t begin = 0; begin < size; begin += kElements)
      blocks.push_back({p, begin, std::min(size, begin + kElements)});
  }
  return blocks;
}

}  // namespace hstu
