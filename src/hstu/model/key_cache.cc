#include "hstu/model/key_cache.h"

namespace hstu {

KeyCache::KeyCache(std::int64_t layers, std::int64_t rows, std::int64_t width, DType type) {
  for (std::int64_t l = 0; l < layers; ++l) {
    k.push_back(Tensor::empty({rows, width}, type));
    v.push_back(Tensor::empty({rows, width}, type));
  }
}

void KeyCache::attach(std::size_t layer, ops::AttentionShape& shape) const {
  shape.kept = {k[layer], v[layer], first};
  if (!past.pages.defined()) return;
  shape.past = past;
  shape.past.k = k[layer], shape.past.v = v[layer];
}

}  // namespace hstu
