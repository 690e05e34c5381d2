#include "hstu/benchmark/attention_heatmap.h"

#include <regex>

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace hstu {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

AttentionSweepCell cell(const std::string& direction, std::int64_t samples, std::int64_t length, double ms,
                        double tflops) {
  AttentionTime time;
  time.burst_ms = ms, time.flops = tflops * ms * 1e9;
  time.route.forward = AttentionKernel::hopper, time.route.backward = AttentionKernel::mma;
  return {direction, samples, length, time, ""};
}

std::vector<AttentionSweepCell> small_sweep() {
  return {cell("fwd", 1, 256, 0.0123, 4.56),
          cell("fwd", 1, 512, 1.234, 78.9),
          cell("fwd", 8, 256, 56.78, 701),
          {"fwd", 8, 512, {}, "more than 2,048 tokens"},
          cell("bwd", 1, 256, 0.5, 12.3)};
}

std::size_t occurrences(const std::string& text, const std::string& word) {
  std::size_t count = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

// "" when every element is closed in order, attributes are quoted and no & or < is alone; else what is
// not.
std::string not_well_formed(const std::string& xml) {
  static const std::regex tag(R"re(<(/?)([a-z]+)((\s+[A-Za-z:-]+="[^"<&]*")*)\s*(/?)>)re");
  static const std::regex text(R"re(([^<&>]|&(amp|lt|gt|quot);)*)re");
  std::vector<std::string> open;
  std::size_t at = 0;
  while (at < xml.size()) {
    const std::size_t next = std::min(xml.find('<', at), xml.size());
    if (!std::regex_match(xml.substr(at, next - at), text)) return "text: " + xml.substr(at, next - at);
    if (next == xml.size()) break;
    const std::size_t end = xml.find('>', next);
    if (end == std::string::npos) return "an element without end";
    const std::string element = xml.substr(next, end + 1 - next);
    std::smatch match;
    if (!std::regex_match(element, match, tag)) return "element: " + element;
    if (match[1] == "/") {
      if (open.empty() || open.back() != match[2]) return "closes nothing: " + element;
      open.pop_back();
      if (open.empty() && xml.find_first_not_of(" \n", end + 1) != std::string::npos) return "a second root";
    } else if (match[5] != "/") {
      open.push_back(match[2]);
    }
    at = end + 1;
  }
  return open.empty() ? "" : "open at the end: " + open.back();
}

TEST(AttentionHeatmap, IsOneWellFormedDocument) {
  ASSERT_NE(not_well_formed("<a><b></a>"), "");  // the check can fail
  ASSERT_NE(not_well_formed("<a>&</a>"), "");
  EXPECT_EQ(not_well_formed(attention_heatmap_svg("A & B <GPU>", "\"quoted\"", small_sweep())), "");
  EXPECT_EQ(not_well_formed(attention_heatmap_svg("nothing", "", {})), "");
}

TEST(AttentionHeatmap, EveryCellTellsSpeedAndTime) {
  const std::string svg = attention_heatmap_svg("A & B", "bf16, causal", small_sweep());
  for (const char* number :
       {">4.56<", ">0.012 ms<", ">78.9<", ">1.23 ms<", ">701<", ">56.8 ms<", ">12.3<", ">0.500 ms<"})
    EXPECT_EQ(occurrences(svg, number), 1u) << number;
  EXPECT_THAT(svg, HasSubstr("8 x 256: 701 TFLOP/s, 56.8 ms, hopper kernels"));
  EXPECT_THAT(svg, HasSubstr("1 x 256: 12.3 TFLOP/s, 0.500 ms, mma kernels"));
}

TEST(AttentionHeatmap, CellsHaveTheShareOfAPeakThatIsKnown) {
  const std::string svg = attention_heatmap_svg("A", "", {cell("both", 8, 256, 50, 450)}, 1000e12);
  for (const char* words : {">450<", ">45.0 %<", ">forward and backward<", "450 TFLOP/s, 50.0 ms"})
    EXPECT_THAT(svg, HasSubstr(words));
}

TEST(AttentionHeatmap, NamesItsTitleGridsAndAxes) {
  const std::string svg = attention_heatmap_svg("A & B", "bf16, causal", small_sweep());
  for (const char* words :
       {">A &amp; B<", ">bf16, causal<", ">forward<", ">backward<", ">tokens of a sample<", ">samples<",
        ">256<", ">512<", ">1<", ">8<", "701 TFLOP/s"})
    EXPECT_THAT(svg, HasSubstr(words));
  const std::string forward = attention_heatmap_svg("t", "", {cell("fwd", 1, 256, 1, 1)});
  EXPECT_THAT(forward, Not(HasSubstr(">backward<")));
}

TEST(AttentionHeatmap, WhatWasLeftOutIsAnEmptyCellThatSaysWhy) {
  const std::string svg = attention_heatmap_svg("t", "", small_sweep());
  EXPECT_EQ(occurrences(svg, "<rect class=\"empty\""), 1u);
  EXPECT_THAT(svg, HasSubstr("8 x 512: more than 2,048 tokens"));
  EXPECT_THAT(svg, HasSubstr("left out: more than 2,048 tokens"));
  const std::string none = attention_heatmap_svg("t", "", {{"fwd", 8, 512, {}, "full"}});
  EXPECT_EQ(occurrences(none, "<rect class=\"empty\""), 1u);
  EXPECT_THAT(none, Not(HasSubstr("TFLOP/s")));
  EXPECT_THAT(none, Not(HasSubstr("nan")));
}

TEST(AttentionHeatmap, TheFastestCellHasTheLightestColourOfBothGrids) {
  const std::string svg = attention_heatmap_svg("t", "", small_sweep());
  EXPECT_TRUE(std::regex_search(svg, std::regex("8 x 256: 701 .*fill=\"#f9e24c\".*on-light.*>701<"))) << svg;
  EXPECT_TRUE(std::regex_search(svg, std::regex("1 x 256: 12.3 .*fill=\"#222258\".*on-dark")));
}

}  // namespace
}  // namespace hstu
