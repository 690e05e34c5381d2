#include "hstu/report/chart.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include "hstu/base/text.h"

namespace hstu {
namespace {

constexpr double kWidth = 640, kHeight = 260;  // user units of the drawing
constexpr double kLeft = 58, kRight = 14, kTop = 10, kBottom = 40;
constexpr std::size_t kMaxPoints = 500;
constexpr std::size_t kColours = 6;  // of the style sheet

struct Axis {
  double low = 0, high = 1, step = 1;

  double fraction(double value) const { return (value - low) / (high - low); }
};

// About five ticks at steps of 1, 2 or 5 times a power of ten.
Axis axis_over(double low, double high) {
  if (high <= low) {
    const double margin = low == 0 ? 1 : std::abs(low) * 0.1;
    low -= margin;
    high += margin;
  }
  const double wanted = (high - low) / 5;
  const double power = std::pow(10, std::floor(std::log10(wanted)));
  double step = power;
  for (const double factor : {2.0, 5.0, 10.0}) {
    if (step < wanted) step = power * factor;
  }
  return {std::floor(low / step) * step, std::ceil(high / step) * step, step};
}

Series thinned(const Series& full) {
  if (full.x.size() <= kMaxPoints) return full;
  const std::size_t run = (full.x.size() + kMaxPoints - 1) / kMaxPoints;
  Series thin{full.name, {}, {}, full.dashed};
  for (std::size_t begin = 0; begin < full.x.size(); begin += run) {
    const std::size_t end = std::min(begin + run, full.x.size());
    double sum = 0;
    for (std::size_t i = begin; i < end; ++i) sum += full.y[i];
    thin.x.push_back(full.x[end - 1]);
    thin.y.push_back(sum / static_cast<double>(end - begin));
  }
  return thin;
}

class Drawing {
 public:
  explicit Drawing(const Chart& chart) {
    for (std::size_t s = 0; s < chart.series.size(); ++s) {
      if (chart.series[s].x.empty()) continue;
      series_.push_back(thinned(chart.series[s]));
      colours_.push_back(s);
    }
    if (series_.empty()) return;
    double x_low = 0, x_high = 0, y_low = series_[0].y[0], y_high = y_low;
    for (const Series& series : series_) {
      const auto [x_min, x_max] = std::minmax_element(series.x.begin(), series.x.end());
      const auto [y_min, y_max] = std::minmax_element(series.y.begin(), series.y.end());
      x_low = std::min(x_low, *x_min), x_high = std::max(x_high, *x_max);
      y_low = std::min(y_low, *y_min), y_high = std::max(y_high, *y_max);
    }
    if (chart.from_zero) y_low = std::min(0.0, y_low);
    x_ = axis_over(x_low, x_high);
    x_.low = x_low, x_.high = std::max(x_high, x_low + 1e-9);
    for (Series& series : series_) {
      if (series.dashed) extend(series);
    }
    y_ = axis_over(y_low, y_high);
  }

  std::string svg(const Chart& chart) const {
    if (series_.empty()) return "";
    std::string text = fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n", kWidth,
                                   kHeight, escaped_html(chart.title));
    add_grid(text, chart);
    for (std::size_t s = 0; s < series_.size(); ++s) add_line(text, s);
    return text + "</svg>\n" + legend();
  }

 private:
  // Extends a reference from one side to the other, even if it has few points.
  void extend(Series& series) const {
    series.x.insert(series.x.begin(), x_.low);
    series.y.insert(series.y.begin(), series.y.front());
    series.x.push_back(x_.high);
    series.y.push_back(series.y.back());
  }
  double x_of(double value) const { return kLeft + x_.fraction(value) * (kWidth - kLeft - kRight); }
  double y_of(double value) const {
    return kHeight - kBottom - y_.fraction(value) * (kHeight - kTop - kBottom);
  }

  void add_grid(std::string& text, const Chart& chart) const {
    const std::int64_t lines = std::llround((y_.high - y_.low) / y_.step);
    for (std::int64_t line = 0; line <= lines; ++line) {
      const double y = y_.low + static_cast<double>(line) * y_.step;
      text += fmt::format("<line class=\"grid\" x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/>", kLeft,
                          kWidth - kRight, y_of(y));
      text += fmt::format("<text class=\"tick\" x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n",
                          kLeft - 6, y_of(y) + 4, short_number(std::abs(y) < y_.step / 1e6 ? 0 : y));
    }
    for (auto tick = static_cast<std::int64_t>(std::ceil(x_.low / x_.step));; ++tick) {
      const double x = static_cast<double>(tick) * x_.step;
      if (x > x_.high) break;
      text += fmt::format("<text class=\"tick\" x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                          x_of(x), kHeight - kBottom + 16, short_number(x));
    }
    text += fmt::format("<text class=\"tick\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                        (kLeft + kWidth - kRight) / 2, kHeight - 6, escaped_html(chart.x_label));
  }

  void add_line(std::string& text, std::size_t s) const {
    const Series& series = series_[s];
    std::string points;
    for (std::size_t i = 0; i < series.x.size(); ++i)
      points += fmt::format("{:.1f},{:.1f} ", x_of(series.x[i]), y_of(series.y[i]));
    text += fmt::format("<polyline class=\"{}\" points=\"{}\"/>\n", line_class(s), points);
    // Marks the points if they are few; a mark shows its numbers when the pointer is on it.
    if (series.dashed || series.x.size() > 60) return;
    for (std::size_t i = 0; i < series.x.size(); ++i) {
      text += fmt::format(
          "<circle class=\"mark s{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\"><title>{}: {:.6g} at "
          "{}</title></circle>\n",
          colours_[s] % kColours, x_of(series.x[i]), y_of(series.y[i]), escaped_html(series.name),
          series.y[i], short_number(series.x[i]));
    }
  }

  // The lines after the last colour are dotted.
  std::string line_class(std::size_t s) const {
    return fmt::format("line s{}{}{}", colours_[s] % kColours, colours_[s] >= kColours ? " dotted" : "",
                       series_[s].dashed ? " dashed" : "");
  }

  std::string legend() const {
    std::string text = "<p class=\"legend\">";
    for (std::size_t s = 0; s < series_.size(); ++s) {
      const Series& series = series_[s];
      text += fmt::format(
          "<span><svg class=\"key\" viewBox=\"0 0 24 8\"><line class=\"{}\" x1=\"0\" x2=\"24\" "
          "y1=\"4\" y2=\"4\"/></svg>{} <b>{:.4g}</b></span>",
          line_class(s), escaped_html(series.name), series.y.back());
    }
    return text + "</p>\n";
  }

  std::vector<Series> series_;        // that have points
  std::vector<std::size_t> colours_;  // of each: its index in the chart
  Axis x_, y_;
};

}  // namespace

std::string to_svg(const Chart& chart) {
  return Drawing(chart).svg(chart);
}

std::string short_number(double value) {
  const double size = std::abs(value);
  if (size >= 1e15 || (size > 0 && size < 1e-3)) return fmt::format("{:.1e}", value);
  for (const auto& [unit, sign] : {std::pair{1e12, 'T'}, {1e9, 'G'}, {1e6, 'M'}, {1e4, 'k'}}) {
    const double divisor = sign == 'k' ? 1e3 : unit;
    if (size >= unit) return fmt::format("{:.4g}{}", value / divisor, sign);
  }
  return fmt::format("{:.4g}", value);
}

}  // namespace hstu
