#include "hstu/kernels/dry.h"
#include "hstu/kernels/mlp_shape.h"

namespace hstu::kernels {

bool is_small_mlp(const MlpShape& s) {
  constexpr std::int64_t kFewRows = 4096;  // every block reads all weights
  return s.rows > 0 && s.rows <= kFewRows && mlp_shared_bytes(s) <= kMostMlpBytes;
}

void mlp(const MlpForward&, DryStream) {}

void mlp_backward(const MlpBackward& p, DryStream stream) {
  dry::take_parts(stream, mlp_blocks(p.shape) * mlp_elements(p.shape));
}

}  // namespace hstu::kernels
