// MetricSpec: what a kind of model says about one of its metrics, so that logs, tables, pages and the best
// checkpoint need to know none by name. docs/metrics.md
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hstu {

enum class Better { larger, smaller, neither };  // neither: counts, and what has no best value

struct MetricSpec {
  std::string_view name;   // in configurations and logs; with a cutoff without it: "ndcg"
  std::string_view title;  // for people
  Better better = Better::larger;
  bool has_cutoff = false;     // its values are named NAME@K
  bool of_lists = false;       // measured at evaluation.ranking_k
  bool in_tables = false;      // tables of runs have a column of it
  bool in_summary = false;     // shown where there is room for few
  bool logs_baseline = false;  // eval lines have the baseline's value too
  bool of_share = false;       // depends on the share of positives: of drawn negatives it says nothing
  bool of_one_class = false;   // followed where all labels are equal, as the headline is undefined then

  // Of single examples, with a best value: what tables and charts of evaluations show.
  bool is_plain() const { return !of_lists && better != Better::neither; }
  // Whether `value` is better than `than` by more than `by`.
  bool improves(double value, double than, double by = 0) const {
    return better == Better::larger ? value > than + by : better == Better::smaller && value < than - by;
  }
};
// The metrics of a kind, in the order in which logs have them. The first is its headline.
using MetricSpecs = std::span<const MetricSpec>;

// The metric of that name, "ndcg@10" with a cutoff of at least 1; null: there is none.
const MetricSpec* find_metric(MetricSpecs specs, std::string_view name);
// The same for a metric that can be the best. UsageError, with the nearest known name, for others.
const MetricSpec& known_metric(MetricSpecs specs, const std::string& name);
// Those of all kinds, each name once.
std::vector<MetricSpec> metrics_of_all(std::span<const MetricSpecs> kinds);
// The K of NAME@K, at least 1.
std::optional<std::int64_t> cutoff_of(std::string_view name);

}  // namespace hstu
