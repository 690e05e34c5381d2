// Line charts as SVG text without scripts or external resources; colours come from the page's style sheet.
#pragma once

#include <string>
#include <vector>

namespace hstu {

struct Series {
  std::string name;
  std::vector<double> x, y;  // of equal length, x ascending
  bool dashed = false;       // a reference: a baseline, a target
};

struct Chart {
  std::string title;
  std::string x_label;  // the horizontal axis begins at 0
  std::vector<Series> series;
  bool from_zero = false;  // the vertical axis begins at 0
};

// The colour of a series is that of its index, so that it is the same in every chart of the same series.
// Omits series without points from lines and legend; "" if no series has a point. A line of more than 500
// points is drawn through the means of consecutive groups of equal size.
std::string to_svg(const Chart& chart);

// 1234567 -> "1.23M", 0.00012 -> "1.2e-04": short enough for an axis.
std::string short_number(double value);

}  // namespace hstu
