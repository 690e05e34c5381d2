// The stages of a step as a drawing: SVG text without scripts or external resources, like chart.h.
#pragma once

#include <string>
#include <vector>

namespace hstu {

struct DrawnStage {
  std::string name;
  double ms = 0;
};

// One bar, a step from left to right, divided into its stages at the scale of their times; each has its name,
// time and share. "" if no stage took time.
std::string stage_drawing(const std::vector<DrawnStage>& stages);

}  // namespace hstu
