#include "hstu/ops/history_keys.h"

#include <numeric>

namespace hstu {

void HistoryKeys::keep(std::int64_t first, std::int64_t count) {
  tokens = Tensor::empty({count}, DType::i32);
  slots = Tensor::empty({count}, DType::i64);
  std::iota(tokens.mutable_data<std::int32_t>(), tokens.mutable_data<std::int32_t>() + count, 0);
  std::iota(slots.mutable_data<std::int64_t>(), slots.mutable_data<std::int64_t>() + count, first);
}

}  // namespace hstu
