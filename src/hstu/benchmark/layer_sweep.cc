#include "hstu/benchmark/layer_sweep.h"

#include <array>
#include <string_view>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/base/terminal.h"
#include "hstu/base/text.h"
#include "hstu/device/memory_pool.h"
#include "hstu/experiment/device_choice.h"
#include "hstu/report/bars.h"

namespace hstu {
namespace {

struct Variant {
  std::string_view name;
  AttentionChoice attention;
  bool recompute;  // norms and SiLU
};
constexpr Variant kVariants[] = {{"mma attention", AttentionChoice::mma, false},
                                 {"fastest attention", AttentionChoice::automatic, false},
                                 {"+ recompute", AttentionChoice::automatic, true}};

// TFLOP/s of recsys-examples on an H100, 32 samples, one layer of 4 heads x 256 (its hstu_layer_perf.png).
constexpr std::array<std::int64_t, 4> kPublishedTokens{1024, 2048, 4096, 8192};
constexpr std::pair<std::string_view, std::array<double, 4>> kPublished[] = {
    {"Triton, not fused", {195.4, 213.6, 229.3, 242.6}},
    {"CUTLASS, not fused", {229.1, 278.7, 342.8, 417.2}},
    {"CUTLASS, fused", {302.0, 352.8, 412.5, 476.5}},
    {"the same, recompute", {269.6, 320.1, 381.9, 450.9}}};

Json point_of(const LayerSweep& sweep, const Variant& variant, std::int64_t tokens) {
  LayerBenchmarkOptions o = sweep.layer;
  o.tokens = tokens;
  o.attention = variant.attention;
  o.recompute.norm = o.recompute.silu = variant.recompute;
  Json point{{"variant", variant.name}, {"tokens", tokens}};
  const bool is_host = choose_device(o.device).device.is_host();
  if (is_host && variant.attention != AttentionChoice::automatic) {
    point["left_out"] = "the host has one form of attention";
    return point;
  }
  try {
    const Json result = benchmark_layer(o);
    for (const char* key : {"share_of_peak", "peak_gib", "device", "gpu"})
      if (result.contains(key)) point[key] = result.at(key);
    point["tflops"] = result.at("burst").at("tflops");
  } catch (const OutOfMemory&) {
    point["left_out"] = "more memory than the device has free";
  }
  return point;
}

}  // namespace

Json sweep_layer(const LayerSweep& sweep) {
  Json points = Json::array();
  for (const std::int64_t tokens : sweep.lengths) {
    for (const Variant& variant : kVariants) {
      points.push_back(point_of(sweep, variant, tokens));
      const Json& point = points.back();
      print_note("{} tokens, {}: {}\n", with_separators(tokens), variant.name,
                 point.contains("tflops") ? fmt::format("{:.4g} TFLOP/s", point.at("tflops").get<double>())
                                          : point.at("left_out").get<std::string>());
    }
  }
  const LayerBenchmarkOptions& o = sweep.layer;
  return {{"layer",
           {{"samples", o.samples},
            {"layers", o.layers},
            {"heads", o.heads},
            {"head_dim", o.head_dim},
            {"dropout", o.dropout},
            {"precision", word_of(kPrecisions, o.precision)},
            {"rounds", o.rounds}}},
          {"points", points}};
}

std::string layer_sweep_svg(const Json& result) {
  const Json& layer = result.at("layer");
  BarChart chart{
      .title = fmt::format("A layer of {} heads x {}, {} samples: TFLOP/s, forward and backward",
                           layer.at("heads").get<std::int64_t>(), layer.at("head_dim").get<std::int64_t>(),
                           layer.at("samples").get<std::int64_t>()),
      .parts = {"TFLOP/s"},
      .bars = {}};
  std::int64_t tokens = 0;
  const auto add_published = [&] {
    for (std::size_t i = 0; i < kPublishedTokens.size(); ++i)
      for (const auto& [name, tflops] : kPublished)
        if (kPublishedTokens[i] == tokens)
          chart.bars.push_back(
              {std::string(name), {tflops[i]}, fmt::format("{:.1f} published, H100", tflops[i]), true});
  };
  for (const Json& point : result.at("points")) {
    const auto now = point.at("tokens").get<std::int64_t>();
    if (now != tokens) add_published();
    tokens = now;
    const bool is_measured = point.contains("tflops");
    const double tflops = is_measured ? point.at("tflops").get<double>() : 0;
    chart.bars.push_back({fmt::format("{}: {}", with_separators(now), point.at("variant").get<std::string>()),
                          {tflops},
                          is_measured ? fmt::format("{:.4g}", tflops) : std::string("left out"),
                          false});
  }
  add_published();
  return bars_svg(chart, true);
}

void draw_layer_sweep(const LayerSweep& sweep) {
  if (sweep.picture.extension() != ".svg")
    fail_usage("--sweep: expected the name of an .svg file, found '{}'", sweep.picture.string());
  const Path figures = Path(sweep.picture).replace_extension(".json");
  check_writable(sweep.picture);
  check_writable(figures);
  const Json result = sweep_layer(sweep);
  write_file(figures, result.dump(2) + "\n");
  write_file(sweep.picture, layer_sweep_svg(result));
  fmt::print("{}\n{}\n", sweep.picture.string(), figures.string());
}

}  // namespace hstu
