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

// The sums of both directions, which follow each other in halves.
void add_sums(std::vector<AttentionSweepCell>& cells,
              const std::function<void(const AttentionSweepCell&)>& report) {
  const std::size_t half = cells.size() / 2;
  for (std::size_t i = 0; i < half; ++i) {
    AttentionSweepCell sum = cells[i];
    const AttentionSweepCell& backward = cells[half + i];
    sum.direction = "both";
    if (sum.time && backward.time) {
      sum.time->burst_ms += backward.time->burst_ms, sum.time->fastest_ms += backward.time->fastest_ms;
      sum.time->flops += backward.time->flops, sum.time->bytes += backward.time->bytes;
      sum.time->percentiles_ms.clear();
      sum.time->route.backward = backward.time->route.backward;
    } else if (sum.time) {
      sum.time.reset(), sum.why = backward.why;
    }
    cells.push_back(std::move(sum));
    report(cells.back());
  }
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
  if (sweep.forward && sweep.backward) add_sums(cells, report);
  return cells;
}

}  // namespace hstu
