#include <algorithm>
#include <charconv>

#include "hstu/base/error.h"
#include "hstu/base/text.h"
#include "hstu/cli/attention_bench.h"

namespace hstu {
namespace {

template <typename Number = std::int64_t>
Number number(const std::string& word, const std::string& option) {
  const std::optional<Number> value = parse_number<Number>(word);
  if (!value) fail_usage("{}: expected a whole number, found '{}'", option, word);
  return *value;
}

AttentionMask mask_of(const AttentionBenchWords& words) {
  AttentionMask mask = words.common.mask;
  const std::vector<std::string> window = split(words.mask, ',');
  if (words.mask == "causal")
    mask.left = -1, mask.right = 0;
  else if (words.mask == "full")
    mask.left = mask.right = -1;
  else if (window.size() == 2) {
    mask.left = number<std::int32_t>(window[0], "--mask");
    mask.right = number<std::int32_t>(window[1], "--mask");
  } else
    fail_usage("--mask: expected causal, full or LEFT,RIGHT, found '{}'", words.mask);
  return mask;
}

AttentionType type_of(const std::string& word) {
  if (word == "bf16") return AttentionType::bf16;
  if (word == "fp16") return AttentionType::fp16;
  if (word == "fp32") return AttentionType::fp32;
  fail_usage("--type: expected bf16, fp16 or fp32, found '{}'", word);
}

constexpr Choice<ScoreFunction> kScores[] = {{"silu", ScoreFunction::silu},
                                             {"softmax", ScoreFunction::softmax}};

std::optional<AttentionDevice> device_of(const std::string& word) {
  if (word.empty()) return {};
  AttentionDevice device;
  const char* const end = word.data() + word.size();
  const auto [point, major_error] = std::from_chars(word.data(), end, device.major);
  if (major_error == std::errc{} && point != end && *point == '.') {
    const auto [rest, minor_error] = std::from_chars(point + 1, end, device.minor);
    if (minor_error == std::errc{} && rest == end && device.major > 0 && device.minor >= 0) return device;
  }
  fail_usage("--device: expected a compute capability such as 8.0 or 9.0, found '{}'", word);
}

// The terms of --bias, none if it is empty.
void add_bias(const std::string& words, AttentionBenchmark& b) {
  if (words.empty()) return;
  for (const std::string& word : split(words, ',')) {
    if (word == "position")
      b.position_bias = true;
    else if (word == "time")
      b.time_bias = true;
    else
      fail_usage("--bias: expected position, time or both with a comma, found '{}'", words);
  }
}

// The positive whole numbers of an option such as "1,2,4".
std::vector<std::int64_t> numbers_of(const std::string& list, const std::string& option) {
  std::vector<std::int64_t> values;
  for (const std::string& word : split(list, ',')) {
    values.push_back(number(word, option));
    if (values.back() < 1) fail_usage("{}: expected positive numbers, found '{}'", option, list);
  }
  return values;
}

std::vector<std::int64_t> ascending(const std::string& list, const std::string& option) {
  std::vector<std::int64_t> values = numbers_of(list, option);
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

}  // namespace

AttentionBenchmark benchmark_of(const AttentionBenchWords& words, const std::string& shape) {
  AttentionBenchmark b = words.common;
  if (split(shape, ',').size() != 4)
    fail_usage("--shape: expected samples,length,heads,head size, found '{}'", shape);
  const std::vector<std::int64_t> sizes = numbers_of(shape, "--shape");
  b.samples = sizes[0], b.length = sizes[1], b.heads = sizes[2], b.head_dim = sizes[3];
  b.mask = mask_of(words), b.type = type_of(words.type), b.device = device_of(words.device);
  b.score = parse_word(kScores, words.score, "--score");
  b.kernels = parse_word(kAttentionChoices, words.kernels, "--kernels");
  add_bias(words.bias, b);
  attention_lengths(b);  // refuses a law it does not know
  return b;
}

AttentionHeatmap heatmap_of(const AttentionBenchWords& words) {
  if (words.shapes.size() != 1) {
    fail_usage("--heatmap: expected one --shape, whose heads and head size it takes, found {}",
               words.shapes.size());
  }
  const Path picture = words.heatmap;
  if (picture.extension() != ".svg")
    fail_usage("--heatmap: expected the name of an .svg file, found '{}'", words.heatmap);
  AttentionHeatmap map{
      .sweep = {.shape = benchmark_of(words, words.shapes[0]),
                .samples = ascending(words.heatmap_samples, "--heatmap-samples"),
                .lengths = ascending(words.heatmap_lengths, "--heatmap-lengths"),
                .forward = words.wants("fwd"),
                .backward = words.wants("bwd")},
      .type = words.type,
      .mask = words.mask,
      .device = words.device,
      .picture = picture,
      .figures = words.json.empty() ? Path(picture).replace_extension(".json") : Path(words.json)};
  map.sweep.shape.sustained = false;
  map.sweep.shape.warmup = 10, map.sweep.shape.timed = 50, map.sweep.shape.quantile = 0.1;
  return map;
}

}  // namespace hstu
