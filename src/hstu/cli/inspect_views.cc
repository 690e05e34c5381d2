#include "hstu/cli/inspect_views.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "hstu/base/json_lines.h"
#include "hstu/base/text.h"
#include "hstu/cli/inspect_statistics.h"
#include "hstu/config/config_difference.h"
#include "hstu/kinds/kinds.h"
#include "hstu/report/run_metrics.h"
#include "hstu/report/sparkline.h"
#include "hstu/report/table_rows.h"

namespace hstu {
namespace {

using Rows = std::vector<std::vector<std::string>>;

constexpr std::size_t kColumns = 60;     // of a sparkline
constexpr std::size_t kTextWidth = 100;  // of wrapped configuration
constexpr std::size_t kMostListed = 10;  // tables, and steps of checkpoints

// Rows without a header.
std::string aligned(const Rows& rows) {
  std::string text;
  for (const auto& row : rows) text += fmt::format("{:<14} {}\n", row[0], row[1]);
  return text;
}

std::string count_of(const Json& json, const char* key) {
  return with_separators(json.value(key, std::int64_t{0}));
}

std::string number(const Json& json, const std::string& key) {
  return json.contains(key) && json[key].is_number() ? fmt::format("{:.4f}", json[key].get<double>())
                                                     : std::string("undefined");
}

std::string names(const Json& list) {
  std::vector<std::string> words;
  for (const Json& entry : list)
    words.push_back(entry.is_object() ? entry.value("name", "") : entry.get<std::string>());
  return words.empty() ? "none" : fmt::format("{}", fmt::join(words, ", "));
}

// Files of manifests: "7 files, 2.4 MiB".
std::string sizes(const Json& files, const Json& segments = Json::array()) {
  std::size_t count = files.size();
  double bytes = 0;
  for (const Json& file : files) bytes += file.value("bytes", 0.0);
  for (const Json& segment : segments) {
    count += segment["columns"].size();
    for (const Json& file : segment["columns"]) bytes += file.value("bytes", 0.0);
  }
  return fmt::format("{} files, {}", count, human_bytes(bytes));
}

// Of all kinds of models.
std::vector<MetricSpec> known_metrics() {
  std::vector<MetricSpecs> of_kinds;
  for (const Kind& kind : kinds()) of_kinds.push_back(kind.metrics);
  return metrics_of_all(of_kinds);
}

// The metrics of a summary, and the counts. Values of the baseline have the names of the model's behind
// `prefix`.
void add_evaluation(const Json& model, const Json& baseline, const std::string& prefix, Rows& rows) {
  std::vector<std::string> titles, values, baselines, counts;
  bool headline = true, worse = false;
  for (const MetricSpec& metric : known_metrics()) {
    const std::string name(metric.name);
    if (!model.contains(name)) continue;
    if (model[name].is_number_integer())
      counts.push_back(fmt::format("{} {}", count_of(model, name.c_str()), metric.title));
    if (!metric.in_summary) continue;
    titles.emplace_back(metric.title);
    values.push_back(number(model, name));
    if (!metric.logs_baseline) continue;
    const Json& of_model = model[name];
    const Json of_baseline = baseline.value(prefix + name, Json());
    if (std::exchange(headline, false) && of_model.is_number() && of_baseline.is_number())
      worse = metric.improves(of_baseline.get<double>(), of_model.get<double>());
    baselines.push_back(number(baseline, prefix + name));
  }
  std::string all = fmt::format("{}", fmt::join(values, ", "));
  if (!baselines.empty()) all += fmt::format("; baseline {}", fmt::join(baselines, ", "));
  if (worse) all += ": better than the model";
  if (!titles.empty()) rows.push_back({fmt::format("{}", fmt::join(titles, ", ")), std::move(all)});
  rows.push_back({"evaluated", fmt::format("{}", fmt::join(counts, ", "))});
}

// "AUC  <curve>  0.7003 to 0.7592"
void add_curve(const std::string& name, const Series& series, Rows& rows) {
  if (series.y.empty()) return;
  rows.push_back(
      {name, fmt::format("{}  {:.4f} to {:.4f}, {} points", sparkline(series.y, kColumns), series.y.front(),
                         series.y.back(), with_separators(static_cast<std::int64_t>(series.y.size())))});
}

std::string steps_of(const Json& checkpoints) {
  std::vector<std::string> steps;
  const std::size_t first = checkpoints.size() > kMostListed ? checkpoints.size() - kMostListed : 0;
  if (first > 0) steps.push_back(fmt::format("{} earlier", first));
  for (std::size_t i = first; i < checkpoints.size(); ++i) steps.push_back(checkpoints[i].dump());
  return steps.empty() ? "none" : fmt::format("of step {}", fmt::join(steps, ", "));
}

// "training" and behind it the keys that differ from the defaults, in lines of at most kTextWidth.
std::string configuration(const RunOptions& options) {
  std::string text, section, line;
  const auto end_line = [&] {
    if (!line.empty()) text += line + "\n";
    line.clear();
  };
  RunOptions defaults;
  ConfigFlattener::Values of_kind = config_values(defaults);
  const auto is_kind = [](const auto& entry) { return entry.first == "model.kind"; };
  const auto kind = *std::find_if(of_kind.begin(), of_kind.end(), is_kind);  // that of a file that names none
  defaults.model.choose(options.model.kind().name);
  of_kind = config_values(defaults);
  *std::find_if(of_kind.begin(), of_kind.end(), is_kind) = kind;
  for (const ConfigDifference& difference : differences(of_kind, config_values(options))) {
    const std::size_t dot = difference.key.rfind('.');
    const std::string place = dot == std::string::npos ? "" : difference.key.substr(0, dot);
    const std::string word = fmt::format(
        "{} = {}", difference.key.substr(dot == std::string::npos ? 0 : dot + 1), difference.after);
    if (place != section) end_line();
    section = place;
    if (line.size() + word.size() + 2 > kTextWidth) end_line();
    line += line.empty() ? fmt::format("  {:<22} {}", place, word) : ", " + word;
  }
  end_line();
  return text;
}

}  // namespace

std::string dataset_view(const Json& json) {
  const Json& counts = json["counts"];
  const Json segments = json.value("segments", Json::array());
  const double days = (json["time"].value("max", 0.0) - json["time"].value("min", 0.0)) / 86400;
  Rows rows{{"dataset", json.value("name", "")},
            {"id", json.value("id", "")},
            {"users", count_of(counts, "users")},
            {"items", count_of(counts, "items")},
            {"events", count_of(counts, "events")},
            {"rankable", fmt::format("{}, {} positive ({})", count_of(counts, "rankable"),
                                     count_of(counts, "positives"), json.value("label", ""))},
            {"time", fmt::format("{} to {} s ({:.1f} days)", json["time"]["min"].dump(),
                                 json["time"]["max"].dump(), days)},
            {"actions", names(json["actions"])},
            {"pools", names(json["pools"])},
            {"attributes", names(json["attributes"])},
            {"context", names(json["context"])},
            {"columns", sizes(json["columns"], segments)}};
  if (!segments.empty())
    rows.push_back({"segments", fmt::format("{} appended, the last with {} events", segments.size(),
                                            count_of(segments.back()["counts"], "events"))});
  if (json.contains("test_events") && !json["test_events"].is_null())
    rows.push_back({"held out", count_of(json["test_events"], "events") + " events"});
  return aligned(rows) + statistics_view(json["statistics"]);
}

std::string run_view(const Json& json, const RunFolder& run) {
  const RunOptions options = read_run_options(run);
  Rows rows{{"run", run.path.string()},
            {"dataset", options.data.path.string()},
            {"checkpoints", steps_of(json.value("checkpoints", Json::array()))}};
  if (json.contains("best_checkpoint")) rows.push_back({"best", "of step " + json["best_checkpoint"].dump()});
  if (json.contains("summary")) {
    const Json& summary = json["summary"];
    const bool trains = json.value("training", false);
    rows.push_back({trains ? "earlier" : "ended",
                    fmt::format("{} after {} steps, {} samples ({:.0f} samples/s)",
                                summary.value("reason", ""), count_of(summary, "step"),
                                count_of(summary, "samples"), summary.value("samples_per_s", 0.0))});
    if (const Json eval = summary.value("eval", Json()); eval.is_object())
      add_evaluation(eval, eval, "baseline_", rows);
  } else {
    rows.push_back({"ended", "not yet"});
  }
  if (json.value("training", false)) rows.push_back({"now", "being trained"});
  if (std::filesystem::exists(run.metrics())) {
    const RunMetrics metrics(read_json_lines(run.metrics()), run.metrics().string());
    metrics.values([&] {
      add_curve("training loss", metrics.curve("train", "loss", ""), rows);
      for (const MetricSpec& metric : options.model.metrics())
        if (metric.in_summary)
          add_curve(std::string(metric.title), metrics.curve("eval", std::string(metric.name), ""), rows);
    });
  }
  std::string histories = histories_view(options);
  if (!histories.empty()) histories = "\n" + histories;
  return fmt::format("{}{}\nconfiguration, where it differs from the defaults:\n{}", aligned(rows), histories,
                     configuration(options));
}

std::string checkpoint_view(const Json& json) {
  const Json& state = json["state"];
  const Json run = state.value("run", Json::object());  // an export of tables has none
  Rows rows{{"checkpoint", "every byte is as it was written"},
            {"step", fmt::format("{}, {} samples; saved for {}", count_of(json, "step"),
                                 count_of(run, "samples"), state.value("reason", ""))},
            {"dataset", state.value("dataset", "")},
            {"size", sizes(json["files"])}};
  if (json.contains("base"))
    rows.push_back({"changes", fmt::format("of tables since step {}", count_of(json["base"], "step"))});
  if (const Json evaluation = run.value("evaluation", Json()); evaluation.is_object()) {
    add_evaluation(evaluation.at("model"), evaluation.at("baseline"), "", rows);
    rows.push_back({"evaluated at", fmt::format("step {}", count_of(run, "evaluated_at"))});
  }
  Rows tables{{"table", "rows", "in use", "width", "optimizer"}};
  for (const Json& entry : json["tables"]) {
    if (tables.size() > kMostListed) break;
    tables.push_back({entry.value("name", ""), most_rows_text(entry.value("rows", std::int64_t{0})),
                      count_of(entry, "rows_alive"), count_of(entry, "dim"), entry.value("optimizer", "")});
  }
  std::string text = aligned(rows) + "\n" + table(tables);
  if (json["tables"].size() > kMostListed)
    text += fmt::format("and {} more\n", json["tables"].size() - kMostListed);
  Rows limits{{"table", "capacity", "evict", "inserted", "admitted", "waiting", "refused", "evicted",
               "expired", "hits", "misses"}};
  for (const Json& entry : json["tables"]) {
    if (!entry.contains("limits") || limits.size() > kMostListed) continue;
    const Json &of_table = entry["limits"], &counts = of_table["counts"];
    limits.push_back({entry.value("name", ""), count_of(of_table, "capacity"), of_table.value("evict", ""),
                      count_of(counts, "inserted"), count_of(counts, "admitted"),
                      count_of(of_table, "waiting"), count_of(counts, "refused"), count_of(counts, "evicted"),
                      count_of(counts, "expired"), count_of(counts, "hits"), count_of(counts, "misses")});
  }
  if (limits.size() > 1) text += "\n" + table(limits);
  return text;
}

}  // namespace hstu
