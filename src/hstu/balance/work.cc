#include "hstu/balance/work.h"

namespace hstu {

std::int64_t nvidia_layer_work(std::int64_t heads, std::int64_t head_dim, std::int64_t tokens) {
  const std::int64_t width = heads * head_dim;
  return 2 * tokens * (4 * width) * width + 2 * tokens * tokens * width * heads * 2 +
         2 * tokens * width * width;
}

}  // namespace hstu
