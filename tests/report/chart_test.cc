#include "hstu/report/chart.h"

#include <regex>

#include <gmock/gmock.h>

namespace hstu {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::size_t occurrences(const std::string& text, const std::string& word) {
  std::size_t count = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

TEST(Chart, NothingToDraw) {
  EXPECT_EQ(to_svg({.title = "loss", .x_label = "samples", .series = {}}), "");
  EXPECT_EQ(to_svg({.title = "loss", .x_label = "samples", .series = {{"loss", {}, {}}}}), "");
}

TEST(Chart, ALineInsideItsFrame) {
  const std::string svg =
      to_svg({.title = "loss", .x_label = "samples", .series = {{"training", {0, 50, 100}, {3, 1, 2}}}});
  // From the left end of the axes (58) to the right one (626), from the top (10) to the bottom (220).
  EXPECT_THAT(svg, HasSubstr("points=\"58.0,10.0 342.0,220.0 626.0,115.0 \""));
  EXPECT_EQ(occurrences(svg, "<circle"), 3u);
  EXPECT_THAT(svg, HasSubstr("<title>training: 1 at 50</title>"));
}

TEST(Chart, ABaselineOfOnePointCrossesTheWholeWidth) {
  const std::string svg = to_svg({.title = "AUC",
                                  .x_label = "samples",
                                  .series = {{"model", {100}, {0.75}}, {"baseline", {100}, {0.5}, true}}});
  EXPECT_TRUE(std::regex_search(svg, std::regex("dashed\" points=\"58.0,([0-9.]+) 626.0,\\1 626.0,\\1 \"")))
      << svg;
  EXPECT_THAT(svg, HasSubstr("cx=\"626.0\""));
}

TEST(Chart, AConstantHasAFiniteAxis) {
  for (const double y : {0.0, 5.0, -1e-9}) {
    const std::string svg = to_svg({.title = "t", .x_label = "x", .series = {{"c", {1, 2}, {y, y}}}});
    EXPECT_THAT(svg, Not(HasSubstr("nan")));
    EXPECT_THAT(svg, Not(HasSubstr("inf")));
  }
}

TEST(Chart, LongRunsAreDrawnThroughMeans) {
  Series noisy{"loss", {}, {}};
  for (int i = 0; i < 100'000; ++i) {
    noisy.x.push_back(i);
    noisy.y.push_back(i % 2);
  }
  const std::string svg = to_svg({.title = "t", .x_label = "x", .series = {noisy}});
  EXPECT_LT(svg.size(), 20'000u);
  EXPECT_EQ(occurrences(svg, "<circle"), 0u);
}

TEST(Chart, NamesCannotBreakThePage) {
  const std::string svg =
      to_svg({.title = "<script>", .x_label = "a & b", .series = {{"\"x\"<b>", {1, 2}, {1, 2}}}});
  EXPECT_THAT(svg, Not(HasSubstr("<script>")));
  EXPECT_THAT(svg, HasSubstr("a &amp; b"));
  EXPECT_THAT(svg, HasSubstr("&quot;x&quot;&lt;b&gt;"));
}

TEST(Chart, ShortNumbers) {
  EXPECT_EQ(short_number(0), "0");
  EXPECT_EQ(short_number(1234), "1234");
  EXPECT_EQ(short_number(12'345), "12.35k");
  EXPECT_EQ(short_number(2'290'835'423), "2.291G");
  EXPECT_EQ(short_number(-0.00012), "-1.2e-04");
}

}  // namespace
}  // namespace hstu
