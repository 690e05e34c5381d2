#include "hstu/report/comparison.h"

namespace hstu {
namespace {

struct ComparedCurve {
  const char *title, *event, *key;
  bool in_time = false;
};
constexpr ComparedCurve kCurves[] = {{"AUC of the held-out samples", "eval", "auc"},
                                     {"normalised entropy of the held-out samples", "eval", "ne"},
                                     {"log loss of the held-out samples", "eval", "log_loss"},
                                     {"GAUC of the held-out samples", "eval", "gauc"},
                                     {"training loss", "train", "loss"},
                                     {"AUC of the latest training samples", "train", "window_auc"},
                                     {"samples a second", "train", "samples_per_s", true}};

}  // namespace

std::string comparison_html(const std::string& title, const std::vector<Cells>& table,
                            std::span<const NamedRun> runs) {
  std::string body = section("Runs", html_table(table.front(), {table.begin() + 1, table.end()}));
  body += "<div class=\"charts\">";
  for (const ComparedCurve& curve : kCurves) {
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
  return html_page(title, body + "</div>\n");
}

}  // namespace hstu
