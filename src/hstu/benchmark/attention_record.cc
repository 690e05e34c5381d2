#include "hstu/benchmark/attention_record.h"

#include "hstu/base/error.h"
#include "hstu/device/machine.h"

namespace hstu {
double peak_of(const GpuSpecs& specs, AttentionType type) {
  switch (type) {
    case AttentionType::bf16:
      return specs.bf16;
    case AttentionType::fp16:
      return specs.fp16;
    case AttentionType::fp32:
      return specs.fp32;
    case AttentionType::fp64:
      break;
  }
  require(false, "no GPU computes attention in fp64");
  return 0;
}

BenchmarkGpu benchmark_gpu() {
  const NvidiaDriver driver = nvidia_driver();
  if (driver.gpus.empty()) return {};
  const Gpu& gpu = driver.gpus.front();
  return {gpu.name, specs_of(gpu)};
}

Json attention_record(const std::string& shape, const std::string& direction, AttentionType type,
                      const AttentionTime& time, const std::optional<GpuSpecs>& specs) {
  const double burst = time.flops / time.burst_ms * 1e3;  // FLOP/s
  Json record{{"shape", shape},
              {"direction", direction},
              {"kernel", to_string(direction == "fwd" ? time.route.forward : time.route.backward)},
              {"burst_ms", time.burst_ms},
              {"fastest_ms", time.fastest_ms},
              {"burst_tflops", burst * 1e-12}};
  if (!time.percentiles_ms.empty()) record["percentiles_ms"] = time.percentiles_ms;  // 1, 10, 20, 50, 100
  if (specs) {
    record["share_of_peak"] = burst / peak_of(*specs, type);
    record["memory_floor_ms"] = time.bytes / specs->memory_bandwidth * 1e3;
  }
  if (time.sustained_ms) {
    record["sustained_ms"] = *time.sustained_ms;
    record["sustained_tflops"] = time.flops / *time.sustained_ms * 1e-9;
  }
  return record;
}

}  // namespace hstu
