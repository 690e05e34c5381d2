#include <charconv>
#include <cstdio>
#include <fstream>
#include <memory>

#include "hstu/attention/attention.h"
#include "hstu/attention/benchmark.h"
#include "hstu/base/error.h"
#include "hstu/base/json.h"
#include "hstu/base/text.h"
#include "hstu/cli/commands.h"

namespace hstu {
namespace {

struct Words {
  std::vector<std::string> shapes{"32,4096,4,128"};
  std::string mask = "causal", direction = "both", type = "bf16", json;
  AttentionBenchmark common;
  bool explain = false;
};

std::int64_t number(const std::string& word, const std::string& option) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc{} || end != word.data() + word.size())
    fail_usage("{}: expected a whole number, found '{}'", option, word);
  return value;
}

AttentionBenchmark benchmark_of(const Words& words, const std::string& shape) {
  AttentionBenchmark b = words.common;
  const std::vector<std::string> parts = split(shape, ',');
  if (parts.size() != 4) fail_usage("--shape: expected samples,length,heads,head size, found '{}'", shape);
  b.samples = number(parts[0], "--shape"), b.length = number(parts[1], "--shape");
  b.heads = number(parts[2], "--shape"), b.head_dim = number(parts[3], "--shape");
  if (b.samples < 1 || b.length < 1) fail_usage("--shape: expected positive numbers, found '{}'", shape);
  const std::vector<std::string> window = split(words.mask, ',');
  if (words.mask == "causal")
    b.mask.left = -1, b.mask.right = 0;
  else if (words.mask == "full")
    b.mask.left = b.mask.right = -1;
  else if (window.size() == 2) {
    b.mask.left = static_cast<std::int32_t>(number(window[0], "--mask"));
    b.mask.right = static_cast<std::int32_t>(number(window[1], "--mask"));
  } else
    fail_usage("--mask: expected causal, full or LEFT,RIGHT, found '{}'", words.mask);
  if (words.type == "bf16")
    b.type = AttentionType::bf16;
  else if (words.type == "fp16")
    b.type = AttentionType::fp16;
  else if (words.type == "fp32")
    b.type = AttentionType::fp32;
  else
    fail_usage("--type: expected bf16, fp16 or fp32, found '{}'", words.type);
  attention_lengths(b);  // refuses a law it does not know
  return b;
}

// Dense bf16 or fp16 products: 4096 operations a clock and multiprocessor, at the 1.83 GHz of the data sheet.
double peak_flops() {
  return attention_device().multiprocessors * 4096 * 1.83e9;
}
// Of HBM3e, data sheet.
constexpr double kBytesPerSecond = 4.8e12;

Json to_json(const std::string& shape, const std::string& direction, const AttentionTime& t) {
  const double burst = t.flops / t.burst_ms * 1e-9, sustained = t.flops / t.sustained_ms * 1e-9;
  return Json{{"shape", shape},
              {"direction", direction},
              {"kernel", to_string(direction == "fwd" ? t.route.forward : t.route.backward)},
              {"burst_ms", t.burst_ms},
              {"fastest_ms", t.fastest_ms},
              {"sustained_ms", t.sustained_ms},
              {"burst_tflops", burst},
              {"sustained_tflops", sustained},
              {"share_of_peak", burst * 1e12 / peak_flops()},
              {"memory_floor_ms", t.bytes / kBytesPerSecond * 1e3}};
}

void explain(const Words& words) {
  for (const std::string& shape : words.shapes) {
    const AttentionBenchmark b = benchmark_of(words, shape);
    AttentionDevice device = attention_device();
    if (b.portable) device.major = 8, device.minor = 0;
    AttentionProblem p;
    p.type = b.type, p.samples = b.samples, p.tokens = b.samples * b.length, p.longest = b.length;
    p.heads = b.heads, p.head_dim = b.head_dim, p.mask = b.mask, p.deterministic = b.deterministic;
    p.q = p.k = p.v = {nullptr, 4 * b.heads * b.head_dim, b.head_dim};
    const AttentionRoute route = choose_attention(p, device);
    fmt::print("{}: forward {}, backward {}: {}\n", shape, to_string(route.forward),
               to_string(route.backward), route.why);
  }
}

void run(const Words& words) {
  if (words.direction != "fwd" && words.direction != "bwd" && words.direction != "both")
    fail_usage("--direction: expected fwd, bwd or both, found '{}'", words.direction);
  constexpr auto kRow = "{:<22} {:<4} {:<7} {:>9} {:>8} {:>6} {:>12} {:>8} {:>9}\n";
  fmt::print(kRow, "shape", "", "kernel", "burst ms", "TFLOP/s", "peak", "sustained ms", "TFLOP/s",
             "memory ms");
  Json all = Json::array();
  for (const std::string& shape : words.shapes) {
    const AttentionBenchmark b = benchmark_of(words, shape);
    for (const std::string direction : {"fwd", "bwd"}) {
      if (words.direction != "both" && words.direction != direction) continue;
      const Json r = to_json(shape, direction,
                             direction == "fwd" ? time_attention_forward(b) : time_attention_backward(b));
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
  if (!words.json.empty()) std::ofstream(words.json) << all.dump(2) << "\n";
}

}  // namespace

void add_attention_bench_command(CLI::App& bench) {
  auto words = std::make_shared<Words>();
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
  command->add_flag("--portable", b.portable, "the kernels that GPUs other than Hopper take");
  command->add_flag("--explain", words->explain, "say which kernels would run, and why; time nothing");
  command->add_option("--json", words->json, "file for the figures");
  command->footer(
      "Burst: the median of 20 launches after a quarter of a second of rest and 5 launches; sustained: the "
      "mean of one\n"
      "second of launches. Operations are counted as the field does: 2 B H L^2 D forward (causal), 2.5 times "
      "that backward.\n"
      "Example:\n  hstu bench attention --shape 32,4096,4,128 --shape 32,4099,4,256 --json attention.json");
  command->callback([words] { words->explain ? explain(*words) : run(*words); });
}

}  // namespace hstu
