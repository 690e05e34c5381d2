#include "hstu/benchmark/attention_heatmap.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "hstu/attention/attention_cuda.h"
#include "hstu/base/contains.h"
#include "hstu/base/terminal.h"
#include "hstu/base/text.h"
#include "hstu/base/version.h"
#include "hstu/benchmark/attention_record.h"

namespace hstu {
namespace {

// User units of the drawing.
constexpr int kCellWidth = 68, kCellHeight = 40, kLeft = 64, kTop = 96, kBetween = 40, kMargin = 20;
constexpr int kBelow = 92;  // ticks, the axis' name, the scale

constexpr const char* kStyle =
    "<style>\n"
    "  text { font: 12px system-ui, sans-serif; text-anchor: middle; fill: #5b6573; }\n"
    "  .ground { fill: #fff; } .empty { fill: none; stroke: #c9cfd7; stroke-dasharray: 3 3; }\n"
    "  .title { font-size: 17px; } .name { font-size: 14px; } .title, .name { font-weight: 600; fill: "
    "#1b2430; }\n"
    "  .title, .left { text-anchor: start; } .right { text-anchor: end; }\n"
    "  .value { font-size: 14px; font-weight: 600; } .ms { font-size: 11px; }\n"
    "  @media (prefers-color-scheme: dark) {\n"
    "    text { fill: #98a3b3; } .title, .name { fill: #e6eaf0; }\n"
    "    .ground { fill: #12161c; } .empty { stroke: #46505e; } }\n"
    "  .on-dark { fill: #fff; } .on-light { fill: #10151c; }\n"
    "</style>\n";

struct Colour {
  double red, green, blue;
};
// From slow to fast, ever lighter, so that the order survives a grey print and any eye.
constexpr std::array<Colour, 5> kScale{
    {{34, 30, 84}, {28, 82, 139}, {22, 136, 140}, {109, 190, 100}, {249, 226, 76}}};

Colour colour_at(double fraction) {
  const double place = std::clamp(fraction, 0.0, 1.0) * (kScale.size() - 1);
  const auto low = std::min(static_cast<std::size_t>(place), kScale.size() - 2);
  const double part = place - static_cast<double>(low);
  const auto mix = [&](double a, double b) { return std::round(a + part * (b - a)); };
  const Colour &a = kScale[low], &b = kScale[low + 1];
  return {mix(a.red, b.red), mix(a.green, b.green), mix(a.blue, b.blue)};
}
std::string hex(const Colour& c) {
  return fmt::format("#{:02x}{:02x}{:02x}", static_cast<int>(c.red), static_cast<int>(c.green),
                     static_cast<int>(c.blue));
}
// Luma of BT.601: what is written on the colour is black above the middle.
bool is_light(const Colour& c) {
  return 0.299 * c.red + 0.587 * c.green + 0.114 * c.blue > 128;
}

double tflops(const AttentionTime& t) {
  return t.flops / t.burst_ms * 1e-9;
}

// Three digits where there are that many before the point; few enough for a cell otherwise.
std::string digits(double value) {
  return fmt::format("{:.{}f}", value, value < 1 ? 3 : value < 10 ? 2 : value < 100 ? 1 : 0);
}

class Picture {
 public:
  Picture(const std::vector<AttentionSweepCell>& cells, double peak) : peak_(peak) {
    for (const AttentionSweepCell& cell : cells) {
      add(samples_, cell.samples), add(lengths_, cell.length), add(directions_, cell.direction);
      if (cell.time) most_ = std::max(most_, tflops(*cell.time));
      if (!cell.why.empty()) whys_.insert(cell.why);
    }
  }

  std::string svg(const std::string& title, const std::string& subtitle,
                  const std::vector<AttentionSweepCell>& cells) const {
    const int grids = std::max(1, static_cast<int>(directions_.size()));
    // The words above the grids need some width even over a single column.
    const int width =
        std::max(720, grids * (kLeft + columns() * kCellWidth) + (grids - 1) * kBetween + kMargin);
    const int height = kTop + rows() * kCellHeight + kBelow;
    std::string text = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
        "role=\"img\">\n<title>{2}</title>\n",
        width, height, escaped_html(title));
    text += kStyle;
    text += fmt::format("<rect class=\"ground\" width=\"{}\" height=\"{}\"/>\n", width, height);
    text += fmt::format("<text class=\"title\" x=\"{}\" y=\"30\">{}</text>\n", kMargin, escaped_html(title));
    text +=
        fmt::format("<text class=\"left\" x=\"{}\" y=\"50\">{}</text>\n", kMargin, escaped_html(subtitle));
    for (std::size_t i = 0; i < directions_.size(); ++i) {
      add_axes(text, i);
      for (const AttentionSweepCell& cell : cells)
        if (cell.direction == directions_[i]) add_cell(text, i, cell);
    }
    add_scale(text, height - 30);
    return text + "</svg>\n";
  }

 private:
  template <typename T>
  static void add(std::vector<T>& to, const T& value) {
    if (!contains(to, value)) to.push_back(value);
  }
  template <typename T>
  static int place(const std::vector<T>& in, const T& value) {
    return static_cast<int>(std::find(in.begin(), in.end(), value) - in.begin());
  }
  int rows() const { return static_cast<int>(samples_.size()); }
  int columns() const { return static_cast<int>(lengths_.size()); }
  int left_of(std::size_t grid) const {
    return kLeft + static_cast<int>(grid) * (columns() * kCellWidth + kLeft + kBetween);
  }

  void add_axes(std::string& text, std::size_t grid) const {
    const int left = left_of(grid), bottom = kTop + rows() * kCellHeight;
    const std::string& direction = directions_[grid];
    const char* const name = direction == "fwd"   ? "forward"
                             : direction == "bwd" ? "backward"
                                                  : "forward and backward";
    text += fmt::format("<text class=\"name\" x=\"{}\" y=\"{}\">{}</text>\n",
                        left + columns() * kCellWidth / 2, kTop - 12, name);
    for (int i = 0; i < columns(); ++i) {
      text += fmt::format("<text x=\"{}\" y=\"{}\">{}</text>\n", left + i * kCellWidth + kCellWidth / 2,
                          bottom + 16, lengths_[static_cast<std::size_t>(i)]);
    }
    for (int i = 0; i < rows(); ++i) {
      text +=
          fmt::format("<text class=\"right\" x=\"{}\" y=\"{}\">{}</text>\n", left - 6,
                      kTop + i * kCellHeight + kCellHeight / 2 + 4, samples_[static_cast<std::size_t>(i)]);
    }
    text += fmt::format("<text x=\"{}\" y=\"{}\">tokens of a sample</text>\n",
                        left + columns() * kCellWidth / 2, bottom + 34);
    text += fmt::format("<text transform=\"translate({} {}) rotate(-90)\">samples</text>\n", left - 44,
                        kTop + rows() * kCellHeight / 2);
  }

  void add_cell(std::string& text, std::size_t grid, const AttentionSweepCell& cell) const {
    const int x = left_of(grid) + place(lengths_, cell.length) * kCellWidth;
    const int y = kTop + place(samples_, cell.samples) * kCellHeight, middle = x + kCellWidth / 2;
    const std::string frame = fmt::format("x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"", x + 1, y + 1,
                                          kCellWidth - 2, kCellHeight - 2);
    const std::string name = fmt::format("{} x {}", cell.samples, cell.length);
    if (!cell.time) {
      text += fmt::format(
          "<g><title>{}: {}</title><rect class=\"empty\" {}/><text x=\"{}\" y=\"{}\">–</text></g>\n", name,
          escaped_html(cell.why), frame, middle, y + kCellHeight / 2 + 4);
      return;
    }
    const double speed = tflops(*cell.time);
    const Colour colour = colour_at(speed / most_);
    const std::string ms = digits(cell.time->burst_ms) + " ms", value = digits(speed);
    const char* const on = is_light(colour) ? "on-light" : "on-dark";
    text +=
        fmt::format("<g><title>{}: {} TFLOP/s, {}, {} kernels</title><rect {} fill=\"{}\"/>", name, value, ms,
                    to_string(cell.direction == "fwd" ? cell.time->route.forward : cell.time->route.backward),
                    frame, hex(colour));
    text += fmt::format("<text class=\"value {}\" x=\"{}\" y=\"{}\">{}</text>", on, middle, y + 19, value);
    const std::string below = peak_ > 0 ? fmt::format("{:.1f} %", 100e12 * speed / peak_) : ms;
    text += fmt::format("<text class=\"ms {}\" x=\"{}\" y=\"{}\">{}</text></g>\n", on, middle, y + 33, below);
  }

  // What the colours mean, and what the empty cells do.
  void add_scale(std::string& text, int y) const {
    constexpr int kSteps = 40, kStepWidth = 5;
    int x = kLeft;
    const auto add_words = [&](const std::string& words) {
      text +=
          fmt::format("<text class=\"left\" x=\"{}\" y=\"{}\">{}</text>\n", x, y + 11, escaped_html(words));
    };
    if (most_ > 0) {
      add_words("0");
      x += 14;
      for (int i = 0; i < kSteps; ++i, x += kStepWidth) {
        text += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"14\" fill=\"{}\"/>\n", x, y,
                            kStepWidth, hex(colour_at((i + 0.5) / kSteps)));
      }
      x += 6;
      add_words(digits(most_) + " TFLOP/s");
      x += 110;
    }
    if (!whys_.empty()) add_words(fmt::format("– left out: {}", fmt::join(whys_, "; ")));
  }

  std::vector<std::int64_t> samples_, lengths_;
  std::vector<std::string> directions_;
  std::set<std::string> whys_;
  double most_ = 0, peak_;
};

// What every cell has in common.
Json conditions_of(const AttentionHeatmap& map, const std::string& gpu) {
  const AttentionBenchmark& b = map.sweep.shape;
  return Json{{"hstu", version()},
              {"gpu", gpu},
              {"heads", b.heads},
              {"head_dim", b.head_dim},
              {"type", map.type},
              {"mask", map.mask},
              {"contexts", b.contexts},
              {"targets", b.targets},
              {"target_group", b.mask.target_group},
              {"lengths", b.lengths},
              {"seed", b.seed},
              {"deterministic", b.deterministic},
              {"device", map.device.empty() ? Json() : Json(map.device)}};
}

std::string subtitle_of(const AttentionHeatmap& map) {
  const AttentionBenchmark& b = map.sweep.shape;
  std::string text = fmt::format("{}, mask {}", map.type, map.mask);
  if (b.contexts > 0) text += fmt::format(", {} contexts", b.contexts);
  if (b.targets > 0) text += fmt::format(", {} targets in groups of {}", b.targets, b.mask.target_group);
  if (b.lengths != "fixed") text += fmt::format(", lengths {}", b.lengths);
  if (b.deterministic) text += ", deterministic";
  if (!map.device.empty()) text += fmt::format(", kernels of compute capability {}", map.device);
  return text + "; tenth percentile of 50 launches; hstu " + version();
}

}  // namespace

std::string attention_heatmap_svg(const std::string& title, const std::string& subtitle,
                                  const std::vector<AttentionSweepCell>& cells, double peak) {
  return Picture(cells, peak).svg(title, subtitle, cells);
}

void draw_attention_heatmap(const AttentionHeatmap& map) {
  check_writable(map.picture);
  check_writable(map.figures);
  cuda::attention_device();  // throws on a machine without a GPU
  const BenchmarkGpu gpu = benchmark_gpu();

  const AttentionSweep& sweep = map.sweep;
  const std::size_t total =
      sweep.samples.size() * sweep.lengths.size() * (sweep.forward && sweep.backward ? 3 : 1);
  Json json = conditions_of(map, gpu.name);
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

  write_file(map.figures, json.dump(2) + "\n");
  const std::string title = fmt::format("Jagged HSTU attention on {}: {} heads of {}", gpu.name,
                                        sweep.shape.heads, sweep.shape.head_dim);
  write_file(map.picture, attention_heatmap_svg(title, subtitle_of(map), cells,
                                                gpu.specs ? peak_of(*gpu.specs, sweep.shape.type) : 0));
  fmt::print("{}\n{}\n", map.picture.string(), map.figures.string());
}

}  // namespace hstu
