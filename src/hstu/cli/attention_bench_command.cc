#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "hstu/arguments/size.h"
#include "hstu/attention/attention_cuda.h"
#include "hstu/base/error.h"
#include "hstu/base/files.h"
#include "hstu/base/json.h"
#include "hstu/benchmark/attention_heatmap.h"
#include "hstu/benchmark/attention_record.h"
#include "hstu/cli/attention_bench.h"
#include "hstu/cli/commands.h"

namespace hstu {
namespace {

// That of --device, or of this machine.
AttentionDevice device_to_explain(const AttentionBenchmark& b) {
  if (b.device) return *b.device;
  try {
    return cuda::attention_device();
  } catch (const Error& error) {
    fail("{}; --device 9.0 explains what a GPU of that compute capability computes", error.what());
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

struct Timed {
  std::string shape;
  AttentionBenchmark benchmark;
};

// Every shape; with --bias each without and with it.
std::vector<Timed> timed_of(const AttentionBenchWords& words) {
  std::vector<Timed> all;
  for (const std::string& shape : words.shapes) {
    const AttentionBenchmark b = benchmark_of(words, shape);
    if (!words.bias.empty()) {
      AttentionBenchmark without = b;
      without.position_bias = without.time_bias = false;
      all.push_back({shape, without});
    }
    all.push_back({shape, b});
  }
  return all;
}

void time_shapes(const AttentionBenchWords& words) {
  const std::vector<Timed> all_timed = timed_of(words);  // all options are checked before anything is timed
  if (!words.json.empty()) check_writable(words.json);
  cuda::attention_device();  // throws on a machine without a GPU
  const BenchmarkGpu gpu = benchmark_gpu();
  constexpr auto kRow = "{:<27} {:<4} {:<7} {:>9} {:>8} {:>6} {:>12} {:>8} {:>9}\n";
  fmt::print(kRow, "shape", "", "kernel", "burst ms", "TFLOP/s", "peak", "sustained ms", "TFLOP/s",
             "memory ms");
  Json all = Json::array();
  for (const auto& [shape, b] : all_timed) {
    const std::string name = shape + (b.position_bias ? "+position" : "") + (b.time_bias ? "+time" : "") +
                             (b.dropout > 0 ? fmt::format("+dropout {}", b.dropout) : "");
    for (const std::string direction : {"fwd", "bwd"}) {
      if (!words.wants(direction)) continue;
      const Json r = attention_record(
          name, direction, b.type,
          direction == "fwd" ? time_attention_forward(b) : time_attention_backward(b), gpu.specs);
      const auto digits = [&](const char* key, int places, double factor = 1) -> std::string {
        return r.contains(key) ? fmt::format("{:.{}f}", factor * r[key].get<double>(), places) : "-";
      };
      fmt::print(kRow, name, direction, r["kernel"].get<std::string>(), digits("burst_ms", 3),
                 digits("burst_tflops", 0), gpu.specs ? digits("share_of_peak", 0, 100) + "%" : "-",
                 digits("sustained_ms", 3), digits("sustained_tflops", 0), digits("memory_floor_ms", 3));
      std::fflush(stdout);
      all.push_back(r);
    }
  }
  if (!gpu.specs)
    fmt::print(
        "No share of peak and no memory floor: hstu knows no data sheet of {} and cannot estimate it.\n",
        gpu.name);
  if (!words.json.empty()) write_file(words.json, all.dump(2) + "\n");
}

void run(const AttentionBenchWords& words) {
  if (!words.wants("fwd") && !words.wants("bwd"))
    fail_usage("--direction: expected fwd, bwd or both, found '{}'", words.direction);
  if (words.explain)
    explain(words);
  else if (!words.heatmap.empty())
    draw_attention_heatmap(heatmap_of(words));
  else
    time_shapes(words);
}

}  // namespace

void add_attention_bench_command(CLI::App& bench) {
  auto words = std::make_shared<AttentionBenchWords>();
  AttentionBenchmark& b = words->common;
  CLI::App* const command = bench.add_subcommand(
      "attention",
      "Time jagged HSTU attention on the GPU: TFLOP/s, share of peak and memory floor of each shape");
  command->add_option("--shape", words->shapes, "samples,length,heads,head size; more than one may be given")
      ->delimiter(' ');
  command->add_option("--mask", words->mask, "causal, full, or a window LEFT,RIGHT (-1: unlimited)");
  command->add_option("--contexts", b.contexts, "context tokens of each sample")->check(at_least(0));
  command->add_option("--targets", b.targets, "target tokens of each sample")->check(at_least(0));
  command->add_option("--target-group", b.mask.target_group, "targets that see each other")
      ->check(at_least(1));
  command->add_option("--lengths", b.lengths,
                      "fixed, uniform, normal, zipf (1.2) or lognormal, up to the shape's length");
  command->add_option("--direction", words->direction, "fwd, bwd or both");
  command->add_option("--type", words->type, "bf16, fp16 or fp32");
  command->add_option("--score", words->score, "function of the scores: silu or softmax");
  command->add_option("--kernels", words->kernels, "auto, hopper, mma or plain");
  command->add_option("--seed", b.seed, "of the lengths");
  command->add_flag("--deterministic", b.deterministic,
                    "a backward pass that gives the same bits every time");
  command->add_option("--dropout", b.dropout, "rate of dropout of the weights")->check(CLI::Range(0.0, 0.99));
  command->add_option("--bias", words->bias,
                      "time every shape without and with a relative bias: position, time or position,time");
  command->add_option("--device", words->device,
                      "use the kernels of a GPU of this compute capability, such as 8.0");
  command->add_flag("--explain", words->explain,
                    "print which kernels are used, and why; time nothing. With --device no GPU is needed");
  command->add_option("--json", words->json, "file for the figures");
  command
      ->add_option(
          "--heatmap", words->heatmap,
          "time a grid of samples x length, draw this .svg file, write the figures to a .json beside it")
      ->excludes("--explain");
  command->add_option("--heatmap-samples", words->heatmap_samples, "of the sweep")->capture_default_str();
  command->add_option("--heatmap-lengths", words->heatmap_lengths, "of the sweep")->capture_default_str();
  command->footer(
      "Burst: 0.25 s idle, 5 launches, then the median of 20; sustained: the mean of one second of "
      "launches.\n"
      "Operations: 4 H D for each pair of query and key that the mask lets through, backward 2.5 times that. "
      "As\n"
      "in publications, a full causal mask counts as half of its square: 2 B H L^2 D.\n"
      "Peak: the share of the GPU's dense rate for the type; memory: the time to read and write every row "
      "once.\n"
      "A heat map takes heads and head size from the shape, leaves out cells of more than 524,288 tokens or "
      "of\n"
      "more memory than the GPU has free, and shows the tenth percentile of 50 launches after 10, as "
      "published.\n"
      "Examples:\n"
      "  hstu bench attention --shape 32,4096,4,128 --shape 32,4099,4,256 --json attention.json\n"
      "  hstu bench attention --bias position,time --deterministic\n"
      "  hstu bench attention --explain --device 8.0 --shape 32,4096,4,96\n"
      "  hstu bench attention --heatmap attention.svg --shape 1,1,4,256");
  command->callback([words] { run(*words); });
}

}  // namespace hstu
