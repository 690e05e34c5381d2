#include "hstu/benchmark/attention_heatmap.h"

#include <algorithm>

#include "hstu/attention/attention_cuda.h"
#include "hstu/base/error.h"
#include "hstu/base/files.h"
#include "hstu/base/terminal.h"
#include "hstu/base/version.h"
#include "hstu/benchmark/attention_record.h"
#include "hstu/cli/attention_bench.h"

namespace hstu {
namespace {

AttentionSweep sweep_of(const AttentionBenchWords& words) {
  if (words.shapes.size() != 1) {
    fail_usage("--heatmap: expected one --shape, whose heads and head size it takes, found {}",
               words.shapes.size());
  }
  AttentionSweep sweep;
  sweep.shape = benchmark_of(words, words.shapes[0]);
  sweep.shape.sustained = false;
  const auto ascending = [](const std::string& list, const std::string& option) {
    std::vector<std::int64_t> values = numbers_of(list, option);
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    return values;
  };
  sweep.samples = ascending(words.heatmap_samples, "--heatmap-samples");
  sweep.lengths = ascending(words.heatmap_lengths, "--heatmap-lengths");
  sweep.forward = words.wants("fwd"), sweep.backward = words.wants("bwd");
  return sweep;
}

// What every cell has in common.
Json conditions_of(const AttentionBenchWords& words, const AttentionBenchmark& b, const std::string& gpu) {
  return Json{{"hstu", version()},
              {"gpu", gpu},
              {"heads", b.heads},
              {"head_dim", b.head_dim},
              {"type", words.type},
              {"mask", words.mask},
              {"contexts", b.contexts},
              {"targets", b.targets},
              {"target_group", b.mask.target_group},
              {"lengths", b.lengths},
              {"seed", b.seed},
              {"deterministic", b.deterministic},
              {"device", words.device.empty() ? Json() : Json(words.device)}};
}

std::string subtitle_of(const AttentionBenchWords& words, const AttentionBenchmark& b) {
  std::string text = fmt::format("{}, mask {}", words.type, words.mask);
  if (b.contexts > 0) text += fmt::format(", {} contexts", b.contexts);
  if (b.targets > 0) text += fmt::format(", {} targets in groups of {}", b.targets, b.mask.target_group);
  if (b.lengths != "fixed") text += fmt::format(", lengths {}", b.lengths);
  if (b.deterministic) text += ", deterministic";
  if (!words.device.empty()) text += fmt::format(", kernels of compute capability {}", words.device);
  return text + "; median of 20 launches; hstu " + version();
}

}  // namespace

void draw_attention_heatmap(const AttentionBenchWords& words) {
  const AttentionSweep sweep = sweep_of(words);
  const Path picture = words.heatmap;
  if (picture.extension() != ".svg")
    fail_usage("--heatmap: expected the name of an .svg file, found '{}'", words.heatmap);
  const Path figures = words.json.empty() ? Path(picture).replace_extension(".json") : Path(words.json);
  check_writable(picture);
  check_writable(figures);
  cuda::attention_device();  // throws on a machine without a GPU
  const BenchmarkGpu gpu = benchmark_gpu();

  const std::size_t total =
      sweep.samples.size() * sweep.lengths.size() * ((sweep.forward ? 1 : 0) + (sweep.backward ? 1 : 0));
  Json json = conditions_of(words, sweep.shape, gpu.name);
  json["records"] = Json::array();
  json["left_out"] = Json::array();
  std::size_t done = 0;
  const auto cells = sweep_attention(
      sweep, time_attention_forward, time_attention_backward, [&](const AttentionSweepCell& cell) {
        const std::string shape =
            fmt::format("{},{},{},{}", cell.samples, cell.length, sweep.shape.heads, sweep.shape.head_dim);
        ++done;
        if (!cell.time) {
          json["left_out"].push_back({{"shape", shape}, {"direction", cell.direction}, {"why", cell.why}});
          print_note("{}/{} {} {}: left out: {}\n", done, total, shape, cell.direction, cell.why);
          return;
        }
        const Json record = attention_record(shape, cell.direction, sweep.shape.type, *cell.time, gpu.specs);
        json["records"].push_back(record);
        print_note("{}/{} {} {}: {:.3f} ms, {:.0f} TFLOP/s\n", done, total, shape, cell.direction,
                   cell.time->burst_ms, record["burst_tflops"].get<double>());
      });

  write_file(figures, json.dump(2) + "\n");
  const std::string title = fmt::format("Jagged HSTU attention on {}: {} heads of {}", gpu.name,
                                        sweep.shape.heads, sweep.shape.head_dim);
  write_file(picture, attention_heatmap_svg(title, subtitle_of(words, sweep.shape), cells));
  fmt::print("{}\n{}\n", picture.string(), figures.string());
}

}  // namespace hstu
