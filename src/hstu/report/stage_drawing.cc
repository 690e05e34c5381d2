#include "hstu/report/stage_drawing.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "hstu/base/text.h"
#include "hstu/report/chart.h"

namespace hstu {
namespace {

constexpr double kDrawingWidth = 1000, kLeftMargin = 10, kRightMargin = 10;  // user units of the drawing
constexpr double kBarTop = 20, kBarHeight = 44, kNameTop = 110, kLineHeight = 20;
constexpr double kNarrow = 110;  // a stage this wide has its name inside the bar

std::string text_at(double x, double y, const char* anchor, const std::string& text) {
  return fmt::format("<text class=\"tick\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y,
                     anchor, escaped_html(text));
}

}  // namespace

std::string stage_drawing(const std::vector<DrawnStage>& stages) {
  double total = 0;
  for (const DrawnStage& stage : stages) total += stage.ms;
  if (total <= 0) return "";
  const auto label = [&](const DrawnStage& stage) {
    return fmt::format("{} {} ms, {:.1f} %", stage.name, short_number(stage.ms), 100 * stage.ms / total);
  };
  std::string text =
      text_at(kLeftMargin, kBarTop - 6, "start", fmt::format("a step: {} ms", short_number(total)));
  std::vector<std::pair<double, std::string>> left,
      right;  // narrow stages: middle and label, by half of the bar
  double x = kLeftMargin;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const double width = (kDrawingWidth - kLeftMargin - kRightMargin) * stages[s].ms / total,
                 middle = x + width / 2;
    text += fmt::format(
        "<rect class=\"mark s{}\" x=\"{:.1f}\" y=\"{}\" width=\"{:.1f}\" "
        "height=\"{}\"><title>{}</title></rect>\n",
        s % 6, x, kBarTop, width, kBarHeight, escaped_html(label(stages[s])));
    if (width >= kNarrow)
      text += text_at(middle, kBarTop + kBarHeight + 18, "middle", label(stages[s]));
    else if (stages[s].ms > 0)
      (middle > kDrawingWidth / 2 ? right : left).emplace_back(middle, label(stages[s]));
    x += width;
  }
  // Narrow stages are named below, each on a line of its own; in this order no leader crosses a name.
  std::reverse(left.begin(), left.end());
  double y = kNameTop;
  const auto add_names = [&](const auto& narrow, double side, const char* anchor) {
    for (const auto& [middle, name] : narrow) {
      text += fmt::format("<path class=\"leader\" d=\"M{:.1f} {} V{:.1f} h{}\"/>\n", middle,
                          kBarTop + kBarHeight, y - 4, 12 * side);
      text += text_at(middle + 16 * side, y, anchor, name);
      y += kLineHeight;
    }
  };
  add_names(left, 1, "start");
  add_names(right, -1, "end");
  return fmt::format(
      "<svg viewBox=\"0 0 {} {:.0f}\" role=\"img\" aria-label=\"stages of a step\">\n{}</svg>\n",
      kDrawingWidth, std::max(y, kNameTop) - 10, text);
}

}  // namespace hstu
