// A first look at scores in bfloat16: which items can be among the first of a query (catalogue_top.cu looks
// at them again in the arithmetic of scores). On Hopper alone.
#pragma once

#include <cstdint>

#include "hstu/base/float16.h"
#include "hstu/device/stream.h"

namespace hstu::kernels::cuda {

// 0: rows are too wide.
constexpr std::int64_t filter_width(std::int64_t width) {
  return width <= 64 ? 64 : width <= 128 ? 128 : width <= 256 ? 256 : 0;
}
bool has_top_filter();

// The items are looked at in parts, each with a list of its own of every query: threads of one warp write it
// alone, so that nothing is counted with atomics.
inline constexpr std::int64_t kMostFilterParts = 32;
// As many as keep the GPU busy.
std::int64_t filter_parts(std::int64_t queries, std::int64_t items);

// Of every part candidates[q, part] are the items i with vectors[q] . rows[i] >= threshold[q], in any order.
// counts[q, part] is their number, also beyond `capacity`, from where on they are left out.
struct TopFilter {
  std::int64_t queries = 0, items = 0, padded = 0;
  const BFloat16* vectors = nullptr;  // (queries, padded)
  const BFloat16* rows = nullptr;     // (items, padded)
  const float* threshold = nullptr;   // (queries)
  std::int64_t parts = 1, capacity = 0;
  std::int32_t* counts = nullptr;      // (queries, parts)
  std::int32_t* candidates = nullptr;  // (queries, parts, capacity)
};
void filter_top(const TopFilter& p, CudaStream stream);

}  // namespace hstu::kernels::cuda
