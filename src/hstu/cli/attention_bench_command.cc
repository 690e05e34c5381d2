#include <cstdio>
#include <memory>

#include "hstu/attention/attention.h"
#include "hstu/attention/attention_cuda.h"
#include "hstu/base/error.h"
#include "hstu/base/files.h"
#include "hstu/cli/attention_bench.h"
#include "hstu/cli/commands.h"

namespace hstu {
namespace {

// Dense bf16 or fp16 products: 4096 operations a clock and multiprocessor, at the 1.83 GHz of the data sheet.
double peak_flops() {
  return cuda::attention_device().multiprocessors * 4096 * 1.83e9;
}
// Of HBM3e, data sheet.
constexpr double kBytesPerSecond = 4.8e12;

// Of --device, or of this machine.
AttentionDevice device_to_explain(const AttentionBenchmark& b) {
  if (b.device) return *b.device;
  try {
    return cuda::attention_device();
  } catch (const Error& error) {
    fail("{}; --device 9.0 explains what a GPU of that compute capability would do", error.what());
  }
}

void explain(const AttentionBenchWords& words) {
  for (const std::string& shape : words.shapes) {
    const AttentionBenchmark b = benchmark_of(words, shape);
    const AttentionRoute route = choose_attention(benchmark_problem(b), device_to_explain(b));
    fmt::print("{}: forward {}, backward {}: {}\n", shape, to_string(route.forward),
               to_string(route.backward), route.why);
  }
}

void time_shapes(const AttentionBenchWords& words) {
  std::vector<AttentionBenchmark> all_benchmarks;  // every word is looked at before anything is timed
  for (const std::string& shape : words.shapes) all_benchmarks.push_back(benchmark_of(words, shape));
  if (!words.json.empty()) check_writable(words.json);
  cuda::attention_device();  // says so where there is no GPU
  constexpr auto kRow = "{:<22} {:<4} {:<7} {:>9} {:>8} {:>6} {:>12} {:>8} {:>9}\n";
  fmt::print(kRow, "shape", "", "kernel", "burst ms", "TFLOP/s", "peak", "sustained ms", "TFLOP/s",
             "memory ms");
  Json all = Json::array();
  for (std::size_t i = 0; i < words.shapes.size(); ++i) {
    const std::string& shape = words.shapes[i];
    const AttentionBenchmark& b = all_benchmarks[i];
    for (const std::string direction : {"fwd", "bwd"}) {
      if (!words.wants(direction)) continue;
      const Json r = attention_record(
          shape, direction, direction == "fwd" ? time_attention_forward(b) : time_attention_backward(b));
      const auto digits = [&](const char* key, int places) {
        return fmt::format("{:.{}f}", r[key].get<double>(), places);
      };
      fmt::print(kRow, shape, direction, r["kernel"].get<std::string>(), digits("burst_ms", 3),
                 digits("burst_tflops", 0), fmt::format("{:.0f}%", 100 * r["share_of_peak"].get<double>()),
                 digits("sustained_ms", 3), digits("sustained_tflops", 0), digits("memory_floor_ms", 3));
      std::fflush(stdout);
      all.push_back(r);
    }
  }
  if (!words.json.empty()) write_file(words.json, all.dump(2) + "\n");
}

void run(const AttentionBenchWords& words) {
  if (!words.wants("fwd") && !words.wants("bwd"))
    fail_usage("--direction: expected fwd, bwd or both, found '{}'", words.direction);
  if (words.explain)
    explain(words);
  else if (!words.heatmap.empty())
    draw_attention_heatmap(words);
  else
    time_shapes(words);
}

}  // namespace

Json attention_record(const std::string& shape, const std::string& direction, const AttentionTime& t) {
  const double burst = t.flops / t.burst_ms * 1e-9;
  Json record{{"shape", shape},
              {"direction", direction},
              {"kernel", to_string(direction == "fwd" ? t.route.forward : t.route.backward)},
              {"burst_ms", t.burst_ms},
              {"fastest_ms", t.fastest_ms},
              {"burst_tflops", burst},
              {"share_of_peak", burst * 1e12 / peak_flops()},
              {"memory_floor_ms", t.bytes / kBytesPerSecond * 1e3}};
  if (t.sustained_ms) {
    record["sustained_ms"] = *t.sustained_ms;
    record["sustained_tflops"] = t.flops / *t.sustained_ms * 1e-9;
  }
  return record;
}

void add_attention_bench_command(CLI::App& bench) {
  auto words = std::make_shared<AttentionBenchWords>();
  AttentionBenchmark& b = words->common;
  CLI::App* const command = bench.add_subcommand(
      "attention", "Jagged HSTU attention on the GPU: time, TFLOP/s and the memory floor of each shape");
  command->add_option("--shape", words->shapes, "samples,length,heads,head size; more than one may be given")
      ->delimiter(' ');
  command->add_option("--mask", words->mask, "causal, full, or a window LEFT,RIGHT (-1: unlimited)");
  command->add_option("--contexts", b.contexts, "context tokens of each sample")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--targets", b.targets, "target tokens of each sample")->check(CLI::NonNegativeNumber);
  command->add_option("--target-group", b.mask.target_group, "targets that see each other")
      ->check(CLI::PositiveNumber);
  command->add_option("--lengths", b.lengths, "fixed, zipf (1.2) or lognormal, up to the shape's length");
  command->add_option("--direction", words->direction, "fwd, bwd or both");
  command->add_option("--type", words->type, "bf16, fp16 or fp32");
  command->add_option("--seed", b.seed, "of the lengths");
  command->add_flag("--deterministic", b.deterministic, "a backward pass that repeats bit for bit");
  command->add_option(
      "--device", words->device,
      "the kernels that a GPU of this compute capability takes, such as 8.0, on the one here");
  command->add_flag("--explain", words->explain,
                    "say which kernels would run, and why; time nothing. With --device no GPU is needed");
  command->add_option("--json", words->json, "file for the figures");
  command
      ->add_option("--heatmap", words->heatmap,
                   "sweep samples x length and draw this .svg file, with the figures in a .json beside it")
      ->excludes("--explain");
  command->add_option("--heatmap-samples", words->heatmap_samples, "of the sweep")->capture_default_str();
  command->add_option("--heatmap-lengths", words->heatmap_lengths, "of the sweep")->capture_default_str();
  command->footer(
      "Burst: the median of 20 launches after a quarter of a second of rest and 5 launches; sustained: the "
      "mean of one\n"
      "second of launches. Operations are counted as the field does: 2 B H L^2 D forward (causal), 2.5 times "
      "that backward.\n"
      "A heat map takes heads and head size of the shape, times bursts alone and leaves out what has more "
      "than 524,288\n"
      "tokens or does not fit into the GPU.\n"
      "Examples:\n"
      "  hstu bench attention --shape 32,4096,4,128 --shape 32,4099,4,256 --json attention.json\n"
      "  hstu bench attention --explain --device 8.0 --shape 32,4096,4,96\n"
      "  hstu bench attention --heatmap attention.svg --shape 1,1,4,256");
  command->callback([words] { run(*words); });
}

}  // namespace hstu
