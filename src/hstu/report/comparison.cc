#include "hstu/report/comparison.h"

#include <algorithm>

#include <fmt/format.h>

namespace hstu {
namespace {

struct ComparedCurve {
  std::string title, event, key;
  bool in_time = false;
};

// The metrics of all runs' kinds, the loss and the speed.
std::vector<ComparedCurve> curves_of(std::span<const NamedRun> runs) {
  std::vector<MetricSpecs> kinds;
  for (const NamedRun& run : runs) kinds.push_back(run.specs);
  std::vector<ComparedCurve> curves;
  for (const MetricSpec& metric : metrics_of_all(kinds))
    if (metric.is_plain())
      curves.push_back(
          {fmt::format("{} of the held-out samples", metric.title), "eval", std::string(metric.name)});
  curves.push_back({"training loss", "train", "loss"});
  for (const MetricSpecs specs : kinds) {
    const std::string title = fmt::format("{} of the latest training samples", specs.front().title);
    const auto is_it = [&](const ComparedCurve& curve) { return curve.title == title; };
    if (std::none_of(curves.begin(), curves.end(), is_it))
      curves.push_back({title, "train", "window_" + std::string(specs.front().name)});
  }
  curves.push_back({"samples a second", "train", "samples_per_s", true});
  return curves;
}

}  // namespace

std::string comparison_html(const std::string& title, const std::vector<Cells>& outcomes,
                            const std::vector<Cells>& settings, std::span<const NamedRun> runs) {
  const auto table = [](const std::vector<Cells>& rows) {
    return html_table(rows.front(), {rows.begin() + 1, rows.end()});
  };
  std::string body = section("Runs", table(outcomes));
  body += "<div class=\"charts\">";
  for (const ComparedCurve& curve : curves_of(runs)) {
    Chart chart{.title = curve.title,
                .x_label = curve.in_time ? "minutes since the run began" : "samples",
                .series = {},
                .from_zero = curve.in_time};
    for (const NamedRun& run : runs) {
      chart.series.push_back(run.metrics.values([&] {
        return curve.in_time ? run.metrics.curve_in_time(curve.event, curve.key, run.name)
                             : run.metrics.curve(curve.event, curve.key, run.name);
      }));
    }
    body += section(chart.title, to_svg(chart));
  }
  body += "</div>\n";
  if (settings.front().size() > 1) body += section("Configuration, where it differs", table(settings));
  return html_page(title, body);
}

}  // namespace hstu
