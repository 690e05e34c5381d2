#include "hstu/ops/history_keys.h"

#include <numeric>

namespace hstu {

void HistoryKeys::keep(std::int64_t first, std::int64_t count, const Context& context) {
  std::vector<std::int32_t> token(static_cast<std::size_t>(count));
  std::vector<std::int64_t> slot(token.size());
  std::iota(token.begin(), token.end(), 0);
  std::iota(slot.begin(), slot.end(), first);
  tokens = Tensor::from({count}, token).copy(context);
  slots = Tensor::from({count}, slot).copy(context);
}

}  // namespace hstu
