#include "hstu/report/comparison.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hstu/base/contains.h"
#include "hstu/base/text.h"

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

bool has_value(const NamedRun& run, const ComparedCurve& curve) {
  return !run.metrics.values([&] { return run.metrics.curve(curve.event, curve.key, run.name); }).x.empty();
}

// NamedRun::samples of the runs that have the curve, each once; of curves of training one for all.
std::vector<std::string> samples_of(std::span<const NamedRun> runs, const ComparedCurve& curve) {
  if (curve.event != "eval") return {""};
  std::vector<std::string> samples;
  for (const NamedRun& run : runs)
    if (has_value(run, curve) && !contains(samples, run.samples)) samples.push_back(run.samples);
  return samples;
}

// A run has a series in every chart, if without points, so that its colour is the same.
std::string chart_of(const ComparedCurve& curve, const std::string& samples, std::span<const NamedRun> runs) {
  Chart chart{.title = curve.title,
              .x_label = curve.in_time ? "minutes since the run began" : "samples",
              .series = {},
              .from_zero = curve.in_time};
  const bool of_evaluation = curve.event == "eval";
  std::vector<std::string> names, others;
  for (const NamedRun& run : runs) {
    Series series{.name = run.name, .x = {}, .y = {}};
    if (of_evaluation && has_value(run, curve)) (run.samples == samples ? names : others).push_back(run.name);
    if (!of_evaluation || run.samples == samples)
      series = run.metrics.values([&] {
        return curve.in_time ? run.metrics.curve_in_time(curve.event, curve.key, run.name)
                             : run.metrics.curve(curve.event, curve.key, run.name);
      });
    chart.series.push_back(std::move(series));
  }
  if (!others.empty()) chart.title += fmt::format(" of {}", fmt::join(names, ", "));
  return section(chart.title, to_svg(chart));
}

}  // namespace

std::string comparison_html(const std::string& title, const std::vector<Cells>& outcomes,
                            const std::vector<Cells>& settings, std::span<const NamedRun> runs,
                            const std::string& note) {
  const auto table = [](const std::vector<Cells>& rows) {
    return html_table(rows.front(), {rows.begin() + 1, rows.end()});
  };
  std::string body = section("Runs", table(outcomes));
  if (!note.empty()) body += "<p><b>" + escaped_html(note) + "</b></p>\n";
  body += "<div class=\"charts\">";
  for (const ComparedCurve& curve : curves_of(runs))
    for (const std::string& samples : samples_of(runs, curve)) body += chart_of(curve, samples, runs);
  body += "</div>\n";
  if (settings.size() > 1) body += section("Configuration, where it differs", table(settings));
  return html_page(title, body);
}

}  // namespace hstu
