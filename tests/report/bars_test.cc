#include "hstu/report/bars.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hstu {
namespace {

TEST(Bars, AreAtOneScaleFromTheAxis) {
  const BarChart chart{.title = "a & b",
                       .parts = {"forward", "backward"},
                       .bars = {{"<one>", {10, 30}, "40 ms", false}, {"others", {20, 0}, "20 ms", true}}};
  const std::string svg = bars_svg(chart);
  for (const char* words :
       {"aria-label=\"a &amp; b\"", "&lt;one&gt;", "width=\"100.0\"", "width=\"300.0\"",
        "class=\"reference\" x=\"210.0\" y=\"34\" width=\"200.0\"", ">backward<", ">40 ms<"})
    EXPECT_THAT(svg, ::testing::HasSubstr(words));
  EXPECT_THAT(svg, ::testing::Not(::testing::HasSubstr("xmlns"))) << "is for a page";
  EXPECT_THAT(bars_svg(chart, true), ::testing::HasSubstr("xmlns=\"http://www.w3.org/2000/svg\""));
  EXPECT_EQ(bars_svg({.title = "", .parts = {"a"}, .bars = {{"one", {0}, "", false}}}), "");
}

}  // namespace
}  // namespace hstu
