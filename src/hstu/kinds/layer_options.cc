#include "hstu/kinds/layer_options.h"

#include <unistd.h>

#include "hstu/base/error.h"
#include "hstu/base/text.h"

namespace hstu {

void describe_recompute(ConfigFields& f, Recompute& o) {
  f.field("recompute_norm", o.norm, "the backward pass computes the layers' normalised inputs once more");
  f.field("recompute_gate", o.gate,
          "the same of the gates' results, or of what an MLP's activation gives in softmax blocks");
  f.field("recompute_layer", o.layer, "the same of whole layers, attention included, from their inputs");
}

// The matrices U, V, Q, K and the output are counted, four times each: values, gradients and two moments.
void check_layers_fit(std::int64_t layers, std::int64_t dim, std::int64_t heads, std::int64_t head_dim) {
  const double weights = 5.0 * static_cast<double>(layers) * static_cast<double>(dim) *
                         static_cast<double>(heads) * static_cast<double>(head_dim);
  const double bytes = 4 * sizeof(float) * weights;
  const double memory =
      static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  if (bytes > memory) {
    fail_usage(
        "model: {} layers of width {} with {} heads of {} need {} for training, and this machine has {}: "
        "lower "
        "model.layers, dim, heads or head_dim",
        layers, dim, heads, head_dim, human_bytes(bytes), human_bytes(memory));
  }
}

}  // namespace hstu
