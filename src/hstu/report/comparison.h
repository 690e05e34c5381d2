// One self-contained HTML page about several runs: their table, and every curve of one kind in one chart.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "hstu/metrics/metric_spec.h"
#include "hstu/report/page.h"
#include "hstu/report/run_metrics.h"

namespace hstu {

struct NamedRun {
  std::string name;
  RunMetrics metrics;
  MetricSpecs specs;  // of its kind of model
  // What its evaluations are of: curves of runs with different texts have charts of their own.
  std::string samples = {};
};

// The results of `outcomes` with a note, the curves, and below them the values of `settings`, if it has a
// second row. The first row of both is the header. A run has one colour in all charts.
std::string comparison_html(const std::string& title, const std::vector<Cells>& outcomes,
                            const std::vector<Cells>& settings, std::span<const NamedRun> runs,
                            const std::string& note = "");

}  // namespace hstu
