// Vectors of items from files: what a tokenizer makes codes of.
#pragma once

#include <cstdint>
#include <vector>

#include "hstu/base/files.h"

namespace hstu {

struct ItemVectors {
  std::vector<std::int64_t> items;  // (V) ids, ascending
  std::vector<float> values;        // (V, D)
  std::int64_t width = 0;           // D

  std::int64_t size() const { return static_cast<std::int64_t>(items.size()); }
};

// Reads vectors (V, D) of f32 or f64 from a .npy file, or from the one tensor with two dimensions of a
// .safetensors file, with the ids (V) of `ids`, .npy of i64 or i32; "": the ids are 0 to V - 1. Or from a
// folder of hstu export --vectors, which has ids of its own. Throws Error naming file and row for a value
// that is not finite, an id that is negative or occurs twice, and files of different lengths.
ItemVectors read_item_vectors(const Path& vectors, const Path& ids);

}  // namespace hstu
