// Bar charts as SVG text without scripts or external resources, like chart.h: in a page, or as files of their
// own.
#pragma once

#include <string>
#include <vector>

namespace hstu {

struct Bar {
  std::string name;
  std::vector<double> parts;  // one for each name of BarChart::parts, from the axis outwards
  std::string note;           // behind the bar: "302 TFLOP/s"
  bool is_reference = false;  // of others: drawn as an outline
};

struct BarChart {
  std::string title;
  std::vector<std::string> parts;  // the names in the legend; one part: no legend
  std::vector<Bar> bars;
};

// Horizontal bars from 0, one below the other. "" if no bar has a part above 0. `own_file`: with its name
// space, style and ground, so that it is a file; otherwise for a page of html_page().
std::string bars_svg(const BarChart& chart, bool own_file = false);

}  // namespace hstu
