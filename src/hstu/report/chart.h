// Line charts as SVG text: no script, nothing fetched, colours from the page's style sheet.
#pragma once

#include <string>
#include <vector>

namespace hstu {

struct Series {
  std::string name;
  std::vector<double> x, y;  // of one length, x ascending
  bool dashed = false;       // something to compare with: a baseline, a target
};

struct Chart {
  std::string title;
  std::string x_label;  // the horizontal axis begins at 0
  std::vector<Series> series;
  bool from_zero = false;  // the vertical axis begins at 0
};

// Series without a point are left out of lines and legend; "" when none has any. A line of more than 500
// points is drawn through the means of equal runs of them.
std::string to_svg(const Chart& chart);

// 1234567 -> "1.23M", 0.00012 -> "1.2e-04": short enough for an axis.
std::string short_number(double value);

}  // namespace hstu
