// A curve as one line of text.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace hstu {

// One block character of eight heights for each value, from the smallest to the largest; more than `columns`
// values are drawn as means of consecutive groups. "" for no values.
std::string sparkline(std::span<const double> values, std::size_t columns);

}  // namespace hstu
