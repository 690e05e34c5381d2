#include "hstu/report/sparkline.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace hstu {

std::string sparkline(std::span<const double> values, std::size_t columns) {
  static constexpr const char* kBlocks[] = {"\u2581", "\u2582", "\u2583", "\u2584",
                                            "\u2585", "\u2586", "\u2587", "\u2588"};
  const std::size_t count = std::min(values.size(), columns);
  if (count == 0) return "";
  std::vector<double> means;
  means.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto group = values.subspan(i * values.size() / count,
                                      (i + 1) * values.size() / count - i * values.size() / count);
    means.push_back(std::accumulate(group.begin(), group.end(), 0.0) / static_cast<double>(group.size()));
  }
  const auto [least, most] = std::minmax_element(means.begin(), means.end());
  const double range = *most - *least;
  std::string text;
  for (const double mean : means) {
    const double height = range > 0 ? (mean - *least) / range : 0.5;
    text += kBlocks[std::min<std::size_t>(static_cast<std::size_t>(height * 8), 7)];
  }
  return text;
}

}  // namespace hstu
