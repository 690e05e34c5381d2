// One self-contained HTML page about a run: no network, no script.
#pragma once

#include <string>

#include "hstu/metrics/metric_spec.h"
#include "hstu/report/run_metrics.h"

namespace hstu {

struct ReportSource {
  std::string title;             // the run's folder
  RunMetrics metrics;            // of metrics.jsonl
  MetricSpecs specs;             // of the run's kind of model
  std::string config;            // the text of config.toml
  bool draws_negatives = false;  // evaluations rank among items that are drawn
  std::string best = {};         // the metric of the best checkpoint; "": none
};

// The page as text: result (the last values and the best), curves of metrics, that of the best checkpoint
// first, with the baselines by name and of the loss, throughput, the stages of a step as a drawing, time by
// stage, table sizes, bad ids, restarts, configuration. The page of a run without a train line says so.
std::string report_html(const ReportSource& source);

}  // namespace hstu
