// A drawing of the work of each rank, before and after a batch was divided by work.
#pragma once

#include <string>
#include <vector>

namespace hstu {

// SVG: for each rank a bar for its slice of the batch and one for its part, in multiples of the mean, which
// is a line. "" for less than two ranks. Both have one value a rank.
std::string work_drawing(const std::vector<double>& in_slices, const std::vector<double>& divided);

}  // namespace hstu
