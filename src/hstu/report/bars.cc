#include "hstu/report/bars.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "hstu/base/text.h"

namespace hstu {
namespace {

constexpr int kBarsWidth = 760, kRow = 26, kBar = 16, kNames = 210, kNotes = 150, kTitle = 40;
constexpr std::size_t kBarColours = 6;  // of the style sheet

// What style.h gives a page.
constexpr const char* kBarStyle =
    "<style>\n"
    "  text { font: 12px system-ui, sans-serif; fill: #1b2430; } .tick { fill: #657080; }\n"
    "  .ground { fill: #fff; } .reference { fill: none; stroke: #657080; }\n"
    "  .s0 { fill: #0b62d6; } .s1 { fill: #d1600a; } .s2 { fill: #07875b; } .s3 { fill: #8a3ffc; }\n"
    "  .s4 { fill: #b8860b; } .s5 { fill: #5b6673; }\n"
    "  @media (prefers-color-scheme: dark) { text { fill: #e6eaf0; } .tick { fill: #98a3b3; }\n"
    "    .ground { fill: #12161c; } .reference { stroke: #98a3b3; }\n"
    "    .s0 { fill: #6aa9ff; } .s1 { fill: #ff9d5c; } .s2 { fill: #3ecf9a; } .s3 { fill: #c39bff; }\n"
    "    .s4 { fill: #e5c04b; } .s5 { fill: #a3afbd; } }\n"
    "</style>\n";

double length_of(const Bar& bar) {
  return std::accumulate(bar.parts.begin(), bar.parts.end(), 0.0);
}

void add_bar(std::string& text, const Bar& bar, int y, double scale) {
  text += fmt::format("<text class=\"tick\" x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n", kNames - 8,
                      y + 12, escaped_html(bar.name));
  double x = kNames;
  for (std::size_t i = 0; i < bar.parts.size(); ++i) {
    const double width = bar.parts[i] * scale;
    const std::string style = bar.is_reference ? "reference" : fmt::format("mark s{}", i % kBarColours);
    if (width > 0)
      text += fmt::format("<rect class=\"{}\" x=\"{:.1f}\" y=\"{}\" width=\"{:.1f}\" height=\"{}\"/>", style,
                          x, y, width, kBar);
    x += width;
  }
  text += fmt::format("<text x=\"{:.1f}\" y=\"{}\">{}</text>\n", x + 6, y + 12, escaped_html(bar.note));
}

void add_legend(std::string& text, const std::vector<std::string>& names, int y) {
  int x = kNames;
  for (std::size_t i = 0; i < names.size(); ++i) {
    text += fmt::format("<rect class=\"mark s{}\" x=\"{}\" y=\"{}\" width=\"12\" height=\"12\"/>",
                        i % kBarColours, x, y);
    text += fmt::format("<text class=\"tick\" x=\"{}\" y=\"{}\">{}</text>\n", x + 16, y + 10,
                        escaped_html(names[i]));
    x += 28 + 7 * static_cast<int>(names[i].size());
  }
}

}  // namespace

std::string bars_svg(const BarChart& chart, bool own_file) {
  double most = 0;
  for (const Bar& bar : chart.bars) most = std::max(most, length_of(bar));
  if (most <= 0) return "";
  const bool has_legend = chart.parts.size() > 1;
  const int top = own_file ? kTitle : 8, below = static_cast<int>(chart.bars.size()) * kRow + top;
  const int height = below + (has_legend ? 30 : 8);
  std::string text = fmt::format("<svg {}viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n",
                                 own_file ? "xmlns=\"http://www.w3.org/2000/svg\" " : "", kBarsWidth, height,
                                 escaped_html(chart.title));
  if (own_file) {
    text += kBarStyle;
    text += fmt::format("<rect class=\"ground\" width=\"{}\" height=\"{}\"/>\n", kBarsWidth, height);
    text += fmt::format("<text x=\"14\" y=\"24\" style=\"font-size: 16px; font-weight: 600\">{}</text>\n",
                        escaped_html(chart.title));
  }
  const double scale = (kBarsWidth - kNames - kNotes) / most;
  for (std::size_t i = 0; i < chart.bars.size(); ++i)
    add_bar(text, chart.bars[i], top + static_cast<int>(i) * kRow, scale);
  if (has_legend) add_legend(text, chart.parts, below + 6);
  return text + "</svg>\n";
}

}  // namespace hstu
