#include "hstu/benchmark/attention_sweep.h"

#include "hstu/base/error.h"
#include "hstu/base/text.h"
#include "hstu/device/memory_pool.h"

namespace hstu {
namespace {

AttentionSweepCell cell_of(const AttentionSweep& sweep, const AttentionBenchmark& b,
                           const std::string& direction, const AttentionTimer& timer) {
  AttentionSweepCell cell{direction, b.samples, b.length, {}, ""};
  if (b.samples > sweep.most_tokens / b.length) {
    cell.why = fmt::format("more than {} tokens", with_separators(sweep.most_tokens));
    return cell;
  }
  try {
    cell.time = timer(b);
  } catch (const OutOfMemory&) {
    cell.why = "more memory than the GPU has free";
  }
  return cell;
}

}  // namespace

std::vector<AttentionSweepCell> sweep_attention(
    const AttentionSweep& sweep, const AttentionTimer& forward, const AttentionTimer& backward,
    const std::function<void(const AttentionSweepCell&)>& report) {
  std::vector<AttentionSweepCell> cells;
  for (const bool is_forward : {true, false}) {
    if (!(is_forward ? sweep.forward : sweep.backward)) continue;
    for (const std::int64_t samples : sweep.samples) {
      for (const std::int64_t length : sweep.lengths) {
        AttentionBenchmark b = sweep.shape;
        b.samples = samples, b.length = length;
        cells.push_back(cell_of(sweep, b, is_forward ? "fwd" : "bwd", is_forward ? forward : backward));
        report(cells.back());
      }
    }
  }
  return cells;
}

}  // namespace hstu
