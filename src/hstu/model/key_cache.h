// Keys and values of earlier tokens for the next pass of a stack of layers, so that a sequence is continued
// without computing it again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hstu/ops/attention.h"

namespace hstu {

struct KeyCache {
  // Room for `rows` tokens of `width` = H * D in each layer, on the host.
  KeyCache(std::int64_t layers, std::int64_t rows, std::int64_t width, DType type);

  // What attention of a layer reads and keeps: the past of the samples, and rows from `first` on.
  void attach(std::size_t layer, ops::AttentionShape& shape) const;

  std::vector<Tensor> k, v;  // of each layer (rows, width)
  // Of the next pass. past: without its k and v; no pages: no sample has a past.
  std::int64_t first = 0;
  ops::AttentionPast past;
};

}  // namespace hstu
