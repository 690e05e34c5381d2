#include "hstu/report/work_drawing.h"

#include <algorithm>
#include <cstddef>
#include <tuple>

#include <fmt/format.h>

#include "hstu/report/chart.h"

namespace hstu {
namespace {

constexpr double kWorkLeft = 50, kWorkWidth = 940, kWorkTop = 10,
                 kWorkHeight = 160;         // of the bars, in user units
constexpr double kRankGap = 0.2;            // of a rank's width, between ranks
constexpr std::size_t kMostRankNames = 32;  // of ranks below the bars

}  // namespace

std::string work_drawing(const std::vector<double>& in_slices, const std::vector<double>& divided) {
  const std::size_t ranks = std::min(in_slices.size(), divided.size());
  if (ranks < 2) return "";
  double most = 1;
  for (std::size_t r = 0; r < ranks; ++r) most = std::max({most, in_slices[r], divided[r]});
  const double rank_width = kWorkWidth / static_cast<double>(ranks), bar = rank_width * (1 - kRankGap) / 2;
  std::string text;
  for (std::size_t r = 0; r < ranks; ++r) {
    const double left = kWorkLeft + static_cast<double>(r) * rank_width + rank_width * kRankGap / 2;
    for (const auto& [style, x, work] :
         {std::tuple(1, left, in_slices[r]), std::tuple(0, left + bar, divided[r])}) {
      const double height = kWorkHeight * work / most;
      text += fmt::format(
          "<rect class=\"mark s{}\" x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.1f}\">"
          "<title>rank {}, {}: {}</title></rect>\n",
          style, x, kWorkTop + kWorkHeight - height, bar, height, r, style == 1 ? "in slices" : "as divided",
          short_number(work));
    }
    if (r % (1 + (ranks - 1) / kMostRankNames) == 0)
      text += fmt::format("<text class=\"tick\" x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                          left + bar, kWorkTop + kWorkHeight + 16, r);
  }
  const double mean = kWorkTop + kWorkHeight - kWorkHeight / most;
  text += fmt::format("<path class=\"grid\" d=\"M{} {:.1f} h{}\"/>\n", kWorkLeft, mean, kWorkWidth);
  text += fmt::format("<text class=\"tick\" x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">mean</text>\n",
                      kWorkLeft - 6, mean + 4);
  return fmt::format(
      "<svg viewBox=\"0 0 1000 {}\" role=\"img\" aria-label=\"work of each rank\">\n{}</svg>\n"
      "<div class=\"legend\"><span><svg class=\"key\" viewBox=\"0 0 24 8\"><rect class=\"mark s1\" "
      "width=\"24\" "
      "height=\"8\"/></svg>in slices</span><span><svg class=\"key\" viewBox=\"0 0 24 8\"><rect class=\"mark "
      "s0\" width=\"24\" height=\"8\"/></svg>as divided</span></div>\n",
      kWorkTop + kWorkHeight + 24, text);
}

}  // namespace hstu
