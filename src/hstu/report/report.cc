#include "hstu/report/report.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hstu/base/error.h"
#include "hstu/base/text.h"
#include "hstu/report/chart.h"
#include "hstu/report/page.h"
#include "hstu/report/stage_drawing.h"
#include "hstu/report/table_rows.h"
#include "hstu/report/work_drawing.h"

namespace hstu {
namespace {

std::string number(const Json* line, const std::string& key, const char* format = "{:.4f}") {
  if (line == nullptr || !line->contains(key) || !(*line)[key].is_number()) return "-";
  return fmt::format(fmt::runtime(format), (*line)[key].get<double>());
}

std::string count(const Json* line, const char* key) {
  return line == nullptr ? "-" : with_separators(line->value(key, std::int64_t{0}));
}

std::string word(const Json& line, const char* key) {
  if (!line.contains(key)) return "-";
  return line[key].is_string() ? line[key].get<std::string>() : line[key].dump();
}

// A metric of evaluations as the page shows it.
struct ShownMetric {
  std::string name, title;
  const MetricSpec* spec;
};

// That of the best checkpoint, or else the headline, then the others that say something.
std::vector<ShownMetric> shown_metrics(const ReportSource& source) {
  std::vector<ShownMetric> shown;
  const auto add = [&](const std::string& name, const MetricSpec& spec) {
    const bool is_known =
        std::any_of(shown.begin(), shown.end(), [&](const auto& m) { return m.name == name; });
    if (is_known || (spec.of_share && source.draws_negatives)) return;
    const auto k = spec.has_cutoff ? cutoff_of(name) : std::nullopt;
    shown.push_back({name, std::string(spec.title) + (k ? fmt::format("@{}", *k) : ""), &spec});
  };
  if (const MetricSpec* const spec = find_metric(source.specs, source.best)) add(source.best, *spec);
  for (const MetricSpec& spec : source.specs)
    if (spec.is_plain()) add(std::string(spec.name), spec);
  return shown;
}

// "last; best 0.7123 at step 40; " of the evaluations of the same samples; "" if the last one is the best.
std::string best_of(const RunMetrics& metrics, const ShownMetric& metric) {
  const Json* best = nullptr;
  const std::string& name = metric.name;
  const auto value = [&](const Json& line) { return line[name].get<double>(); };
  for (const Json* const line : metrics.comparable_evaluations()) {
    if (!line->contains(name) || !(*line)[name].is_number()) continue;
    if (best == nullptr || metric.spec->improves(value(*line), value(*best))) best = line;
  }
  if (best == nullptr || best == metrics.last("eval")) return "";
  return fmt::format("last; best {} at step {}; ", number(best, name), count(best, "step"));
}

// The baselines that have the metric, by name, with the keys of their values in an eval line.
std::vector<std::pair<std::string, std::string>> baselines_of(const Json* eval, const std::string& metric) {
  std::vector<std::pair<std::string, std::string>> found;
  if (eval == nullptr) return found;
  const Json items = eval->value("item_baselines", Json::object());
  for (const auto& [name, measures] : items.items())
    if (measures.contains(metric) && measures[metric].is_number())
      found.emplace_back(name, fmt::format("item_baselines.{}.{}", name, metric));
  if (found.empty() && eval->contains("baseline_" + metric))
    found.emplace_back("running rates", "baseline_" + metric);
  return found;
}

std::string baseline_texts(const RunMetrics& metrics, const ShownMetric& metric) {
  const Json* const eval = metrics.last("eval");
  std::vector<std::string> texts;
  for (const auto& [name, key] : baselines_of(eval, metric.name)) {
    const Series of_baseline = metrics.curve("eval", key, name),
                 of_model = metrics.curve("eval", metric.name, "");
    if (of_baseline.y.empty()) continue;
    const bool better = !of_model.y.empty() && metric.spec->improves(of_baseline.y.back(), of_model.y.back());
    texts.push_back(
        fmt::format("{} {:.4f}{}", name, of_baseline.y.back(), better ? ", better than the model" : ""));
  }
  return texts.empty() ? "of held-out samples" : fmt::format("{}", fmt::join(texts, "; "));
}

std::string result(const ReportSource& source) {
  const RunMetrics& metrics = source.metrics;
  const Json* const eval = metrics.last("eval");
  const Json* const train = metrics.last("train");
  const Json* const end = metrics.last("end");
  std::string text = "<div class=\"tiles\">";
  const auto tile = [&](std::string_view name, const std::string& value, const std::string& note) {
    text += fmt::format("<div><span>{}</span><b>{}</b><small>{}</small></div>", name, escaped_html(value),
                        escaped_html(note));
  };
  bool is_first = true;
  for (const ShownMetric& metric : shown_metrics(source))
    if (std::exchange(is_first, false) || metric.spec->in_summary)
      tile(metric.title, number(eval, metric.name),
           best_of(metrics, metric) + baseline_texts(metrics, metric));
  tile("loss", number(train, "loss"), "of the last steps");
  const Json* const latest = end != nullptr ? end : train;
  tile("samples", count(latest, "samples"), "in " + count(latest, "step") + " steps");
  tile("samples/s", number(train, "samples_per_s", "{:.0f}"), "of the last steps");
  tile("state", end != nullptr ? word(*end, "reason") : "not ended",
       fmt::format("restarts: {}", metrics.all("resume").size()));
  return text + "</div>\n";
}

// Metrics of lists, if the last evaluation measured them.
std::vector<Series> list_curves(const RunMetrics& metrics, MetricSpecs specs) {
  std::vector<Series> curves;
  const Json* const eval = metrics.last("eval");
  if (eval == nullptr) return curves;
  for (const auto& [key, value] : eval->items()) {
    const MetricSpec* const metric = find_metric(specs, key);
    if (metric != nullptr && metric->of_lists) curves.push_back(metrics.curve("eval", key, key));
  }
  return curves;
}

// Of held-out samples, of the baselines, and of training samples before their update, as far as the log has
// them.
Chart metric_chart(const RunMetrics& metrics, const ShownMetric& metric) {
  const std::string& name = metric.name;
  Chart chart{metric.title, "samples", {metrics.curve("eval", name, "held-out samples")}};
  for (const auto& [baseline, key] : baselines_of(metrics.last("eval"), name)) {
    chart.series.push_back(metrics.curve("eval", key, baseline));
    chart.series.back().dashed = true;
  }
  chart.series.push_back(metrics.curve("train", "window_" + name, "latest training samples"));
  chart.series.push_back(metrics.curve("train", "lifetime_" + name, "all training samples"));
  return chart;
}

std::string charts(const ReportSource& source) {
  const RunMetrics& metrics = source.metrics;
  std::vector<Chart> list;
  for (const ShownMetric& metric : shown_metrics(source)) list.push_back(metric_chart(metrics, metric));
  list.push_back({"loss", "samples", {metrics.curve("train", "loss", "training loss")}});
  list.push_back({"held-out samples as lists of users", "samples", list_curves(metrics, source.specs)});
  const std::vector<Chart> others{
      {"samples a second",
       "minutes since the run began",
       {metrics.curve_in_time("train", "samples_per_s", "samples/s")},
       true},
      {"TFLOP/s by the published formula, and computed",
       "minutes since the run began",
       {metrics.curve_in_time("train", "tflops", "TFLOP/s"),
        metrics.curve_in_time("train", "computed_tflops", "computed TFLOP/s")},
       true},
      {"utilisation of the GPU's peak",
       "minutes since the run began",
       {metrics.curve_in_time("train", "mfu", "MFU"),
        metrics.curve_in_time("train", "computed_mfu", "computed")},
       true},
      {"milliseconds of a step",
       "minutes since the run began",
       {metrics.curve_in_time("train", "data_wait_ms", "data wait"),
        metrics.curve_in_time("train", "lookup_ms", "row lookup"),
        metrics.curve_in_time("train", "forward_ms", "forward"),
        metrics.curve_in_time("train", "backward_ms", "backward"),
        metrics.curve_in_time("train", "update_ms", "update")},
       true},
      {"work of the ranks: the largest over the mean",
       "samples",
       {metrics.curve("train", "work_max_over_mean", "as divided"),
        metrics.curve("train", "work_max_over_mean_of_slices", "in slices")}},
      {"learning rates",
       "samples",
       {metrics.curve("train", "lr_dense", "dense"), metrics.curve("train", "lr_sparse", "embedding rows")},
       true},
      {"gradient norm before clipping", "samples", {metrics.curve("train", "gradient_norm", "norm")}, true}};
  list.insert(list.end(), others.begin(), others.end());
  std::string text = "<div class=\"charts\">";
  for (const Chart& chart : list) text += section(chart.title, to_svg(chart));
  return text + "</div>\n";
}

// Of an average step of the run.
std::string step_drawing(const RunMetrics& metrics) {
  std::vector<DrawnStage> stages;
  for (const auto& [name, ms] : metrics.step_ms()) stages.push_back({name, ms});
  return stage_drawing(stages);
}

// Of the latest train line.
std::string work_of_ranks(const RunMetrics& metrics) {
  const Json* const line = metrics.last("train");
  if (line == nullptr || !line->contains("work_of_ranks")) return "";
  const auto works = [&](const char* key) { return line->value(key, std::vector<double>()); };
  return work_drawing(works("work_of_ranks_in_slices"), works("work_of_ranks")) +
         fmt::format(
             "<p>The batch of step {}: the largest work of a rank is {} of the mean in slices and {} as "
             "divided. "
             "The division took {} ms on a loader's thread; steps waited for {} ms of it.</p>\n",
             count(line, "step"), number(line, "work_max_over_mean_of_slices"),
             number(line, "work_max_over_mean"), number(line, "division_ms", "{:.3f}"),
             number(line, "division_exposed_ms", "{:.3f}"));
}

std::string stages(const RunMetrics& metrics) {
  const auto seconds = metrics.stage_seconds();
  double total = 0;
  for (const auto& [name, time] : seconds) total += time;
  std::string text;
  for (const auto& [name, time] : seconds) {
    text += fmt::format(
        "<div class=\"bar\"><span>{}</span><i style=\"width:{:.1f}%\"></i><small>{}, {:.1f} "
        "%</small></div>\n",
        name, 60 * time / seconds.front().second, human_duration(time), 100 * time / total);
  }
  return text;
}

// The rows in use of the latest train line, and the maximum size of each table.
std::string tables(const RunMetrics& metrics) {
  const Json* const line = metrics.last("train");
  if (line == nullptr || !line->contains("table_rows")) return "";
  std::vector<Cells> rows;
  for (const auto& [name, alive] : (*line)["table_rows"].items()) {
    const Json table = metrics.run().value("tables", Json::object()).value(name, Json::object());
    const auto dim = table.value("dim", std::int64_t{0}), limit = table.value("rows", std::int64_t{0});
    const auto bytes = static_cast<double>(alive.get<std::int64_t>() * dim) * sizeof(float);
    rows.push_back({name, with_separators(alive.get<std::int64_t>()), most_rows_text(limit),
                    std::to_string(dim), human_bytes(bytes)});
  }
  return html_table({"table", "rows in use", "rows at most", "width", "values"}, rows);
}

// What happened to the rows of tables with limits, until the latest train line.
std::string limits(const RunMetrics& metrics) {
  const Json* const line = metrics.last("train");
  if (line == nullptr || !line->contains("tables")) return "";
  const auto number = [](const Json& table, const char* name) {
    return with_separators(table.value(name, std::int64_t{0}));
  };
  std::vector<Cells> rows;
  for (const auto& [name, t] : (*line)["tables"].items()) {
    const double hits = t.value("hits", 0.0), all = hits + t.value("misses", 0.0);
    rows.push_back({name, number(t, "capacity"), fmt::format("{:.1f} %", 100 * t.value("load", 0.0)),
                    number(t, "inserted"), number(t, "admitted"), number(t, "waiting"), number(t, "refused"),
                    number(t, "evicted"), number(t, "expired"),
                    all > 0 ? fmt::format("{:.1f} %", 100 * hits / all) : ""});
  }
  return html_table({"table", "capacity", "full", "inserted", "admitted", "waiting", "refused", "evicted",
                     "expired", "ids with a row"},
                    rows);
}

// What went through the caches of tables, until the latest train line.
std::string caches(const RunMetrics& metrics) {
  const Json* const line = metrics.last("train");
  if (line == nullptr || !line->contains("caches")) return "";
  std::vector<Cells> rows;
  for (const auto& [name, c] : (*line)["caches"].items()) {
    const double hits = c.value("hits", 0.0), all = hits + c.value("misses", 0.0);
    rows.push_back({name, with_separators(c.value("rows", std::int64_t{0})),
                    all > 0 ? fmt::format("{:.1f} %", 100 * hits / all) : "",
                    with_separators(c.value("prefetched", std::int64_t{0})),
                    human_bytes(c.value("bytes_in", 0.0)), human_bytes(c.value("bytes_out", 0.0))});
  }
  return html_table(
      {"cache of table", "rows", "rows that were there", "came before their step", "into the cache", "back"},
      rows);
}

std::string bad_ids(const RunMetrics& metrics) {
  const Json* const line = metrics.last("train");
  if (line == nullptr) return "";
  std::vector<Cells> rows;
  const Json features = line->value("bad_ids", Json::object());
  for (const auto& [feature, ids] : features.items())
    rows.push_back({feature, with_separators(ids.get<std::int64_t>())});
  return rows.empty() ? "<p>None: every id was inside its table.</p>\n"
                      : html_table({"feature", "ids outside their table, read as zeros"}, rows);
}

std::string restarts(const RunMetrics& metrics) {
  std::vector<Cells> rows;
  for (const Json* line : metrics.all("resume")) {
    rows.push_back({count(line, "step"), word(*line, "version"), word(*line, "changed")});
  }
  return rows.empty() ? "" : html_table({"at step", "version", "configuration changed"}, rows);
}

std::string evaluations(const ReportSource& source) {
  const RunMetrics& metrics = source.metrics;
  Cells head{"step", "samples"};
  std::vector<std::string> names;
  const Json* const last = metrics.last("eval");
  for (const MetricSpec& metric : source.specs) {
    const std::string name(metric.name);
    if (last == nullptr || !last->contains(name) || (*last)[name].is_number_integer()) continue;
    if (metric.of_share && source.draws_negatives) continue;
    head.emplace_back(metric.title);
    names.push_back(name);
  }
  head.emplace_back("s");
  std::vector<Cells> rows;
  for (const Json* line : metrics.all("eval")) {
    Cells row{count(line, "step"), count(line, "samples")};
    for (const std::string& name : names) row.push_back(number(line, name));
    row.push_back(number(line, "eval_s", "{:.1f}"));
    rows.push_back(std::move(row));
  }
  return rows.empty() ? "" : html_table(head, rows);
}

std::string origin(const RunMetrics& metrics) {
  const Json& run = metrics.run();
  std::vector<Cells> rows;
  for (const char* key : {"program", "version", "dataset", "config_hash", "seed", "threads",
                          "dense_parameters", "train_samples", "eval_samples"}) {
    rows.push_back({key, word(run, key)});
  }
  const Json machine = run.value("machine", Json::object());
  for (const auto& [key, value] : machine.items()) {
    if (!value.is_null()) rows.push_back({"machine " + key, word(machine, key.c_str())});
  }
  return "<div class=\"words\">" + html_table({"what", "value"}, rows) + "</div>\n";
}

std::string page_of(const ReportSource& source) {
  const RunMetrics& metrics = source.metrics;
  std::string body =
      metrics.last("train") == nullptr ? "<p>No step has been logged yet.</p>\n" : result(source);
  body += charts(source);
  body += section("The stages of a step", step_drawing(metrics));
  body += section("Time by stage", stages(metrics));
  body += section("Work of each rank", work_of_ranks(metrics));
  body += section("Embedding tables", tables(metrics) + limits(metrics) + caches(metrics));
  body += section("Ids outside their tables", bad_ids(metrics));
  body += section("Evaluations", evaluations(source));
  body += section("Restarts", restarts(metrics));
  body += section("Where it comes from", origin(metrics));
  body += section("Configuration", "<pre>" + escaped_html(source.config) + "</pre>\n");
  return html_page(source.title, body);
}

}  // namespace

std::string report_html(const ReportSource& source) {
  return source.metrics.values([&] { return page_of(source); });
}

}  // namespace hstu
