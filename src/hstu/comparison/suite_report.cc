#include "hstu/comparison/suite_report.h"

#include <algorithm>
#include <functional>

#include "hstu/base/csv_text.h"
#include "hstu/base/text.h"
#include "hstu/report/bars.h"

namespace hstu {
namespace {

std::string cell(const std::optional<double>& value, const char* form) {
  return value && *value > 0 ? fmt::format(fmt::runtime(form), *value) : "-";
}
std::string percent(const std::optional<double>& share) {
  return share && *share > 0 ? fmt::format("{:.2f}", 100 * *share) : "-";
}

std::string markdown(const std::vector<Cells>& rows) {
  std::string text;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    text += fmt::format("| {} |\n", fmt::join(rows[i], " | "));
    if (i > 0) continue;
    for (std::size_t c = 0; c < rows[0].size(); ++c) text += c == 0 ? "| ---" : " | ---:";
    text += " |\n";
  }
  return text;
}

BarChart chart_of(const std::string& title, std::span<const SuiteFigures> figures, const char* form,
                  const std::function<std::optional<double>(const SuiteFigures&)>& value_of) {
  BarChart chart{.title = title, .parts = {"all"}, .bars = {}};
  for (const SuiteFigures& f : figures) {
    const std::optional<double> value = value_of(f);
    chart.bars.push_back({f.name, {value.value_or(0)}, value ? cell(value, form) : f.state});
  }
  return chart;
}

// Bars of what others published stand below ours, in outline.
void add_published(BarChart& chart, const Suite& suite, const char* form, double PublishedFigures::*field,
                   double factor = 1) {
  std::vector<Bar> bars;
  for (const Bar& bar : chart.bars) {
    bars.push_back(bar);
    for (const PublishedFigures& p : suite.published) {
      if (p.experiment != bar.name || p.*field <= 0) continue;
      bars.push_back({p.hardware, {factor * (p.*field)}, cell(factor * (p.*field), form), true});
    }
  }
  chart.bars = std::move(bars);
}

std::vector<std::pair<std::string, BarChart>> charts_of(const Suite& suite,
                                                        std::span<const SuiteFigures> figures) {
  BarChart speed =
      chart_of("TFLOP/s of a GPU", figures, "{:.1f}", [](const SuiteFigures& f) { return f.tflops; });
  add_published(speed, suite, "{:.1f}", &PublishedFigures::tflops);
  BarChart mfu = chart_of("MFU, %", figures, "{:.2f}", [](const SuiteFigures& f) {
    return f.mfu ? std::optional(100 * *f.mfu) : std::nullopt;
  });
  add_published(mfu, suite, "{:.2f}", &PublishedFigures::mfu, 100);
  const BarChart memory = chart_of("memory of the passes, GiB", figures, "{:.3g}", [](const SuiteFigures& f) {
    return f.memory_gib > 0 ? std::optional(f.memory_gib) : std::nullopt;
  });
  BarChart stages{.title = "a step by stage, ms", .parts = {}, .bars = {}};
  for (const SuiteFigures& f : figures) {
    Bar bar{f.name, {}, f.step_ms > 0 ? fmt::format("{:.4g} ms", f.step_ms) : f.state};
    const bool is_first = stages.parts.empty();
    for (const auto& [name, ms] : f.stages) {
      if (is_first) stages.parts.push_back(name);
      bar.parts.push_back(ms);
    }
    stages.bars.push_back(std::move(bar));
  }
  return {{"tflops.svg", speed}, {"mfu.svg", mfu}, {"stages.svg", stages}, {"memory.svg", memory}};
}

std::string markdown_report(const Suite& suite, std::span<const SuiteFigures> figures,
                            const std::vector<std::pair<std::string, BarChart>>& charts) {
  std::string text = fmt::format("# {}\n\n", suite.title);
  if (!suite.about.empty()) text += suite.about + "\n\n";
  if (const std::string scale = scale_text(suite); !scale.empty()) text += "**" + scale + "**\n\n";
  text += markdown(suite_table(figures));
  if (const auto published = published_table(suite, figures); published.size() > 1)
    text += "\n## Beside published figures\n\n" + markdown(published);
  for (const auto& [file, chart] : charts)
    if (!bars_svg(chart).empty()) text += fmt::format("\n![{}]({})\n", chart.title, file);
  text += "\n## Experiments\n\n";
  for (const SuiteExperiment& e : suite.experiments) {
    text += fmt::format("- **{}** {}", e.name, e.about);
    for (const std::string& set : e.set) text += fmt::format(" `{}`", set);
    text += "\n";
  }
  return text;
}

std::string page(const Suite& suite, std::span<const SuiteFigures> figures,
                 const std::vector<std::pair<std::string, BarChart>>& charts) {
  const auto table = [](const std::vector<Cells>& rows) {
    return html_table(rows.front(), {rows.begin() + 1, rows.end()});
  };
  std::string body;
  if (!suite.about.empty()) body += "<p>" + escaped_html(suite.about) + "</p>\n";
  if (const std::string scale = scale_text(suite); !scale.empty())
    body += "<p><b>" + escaped_html(scale) + "</b></p>\n";
  body += section("Experiments", table(suite_table(figures)));
  if (const auto published = published_table(suite, figures); published.size() > 1)
    body += section("Beside published figures", table(published));
  for (const auto& [file, chart] : charts) body += section(chart.title, bars_svg(chart));
  std::vector<Cells> keys;
  for (const SuiteExperiment& e : suite.experiments)
    keys.push_back({e.name, e.about, fmt::format("{}", fmt::join(e.set, " "))});
  body += section("What they are",
                  "<div class=\"words\">" + html_table({"experiment", "about", "keys"}, keys) + "</div>");
  return html_page(suite.title, body);
}

}  // namespace

std::vector<Cells> suite_table(std::span<const SuiteFigures> figures) {
  std::vector<Cells> rows{{"experiment", "ranks", "TFLOP/s a GPU", "median", "best", "MFU %", "median",
                           "best", "tokens/s a GPU", "ms a step", "memory GiB", "planned", "balance before",
                           "after", "exposed %", "speed-up", "days/epoch", "state"}};
  for (const SuiteFigures& f : figures) {
    rows.push_back(
        {f.name, std::to_string(f.ranks), cell(f.tflops, "{:.4g}"), cell(f.median_tflops, "{:.4g}"),
         cell(f.best_tflops, "{:.4g}"), percent(f.mfu), percent(f.median_mfu), percent(f.best_mfu),
         cell(f.tokens_per_s, "{:.0f}"), cell(f.step_ms, "{:.4g}"), cell(f.memory_gib, "{:.3g}"),
         cell(f.planned_gib, "{:.3g}"), cell(f.balance_before, "{:.3f}"), cell(f.balance_after, "{:.3f}"),
         percent(f.exposed_share), cell(f.speedup, "{:.2f}"), cell(f.days_per_epoch, "{:.3g}"), f.state});
  }
  return rows;
}

std::vector<Cells> published_table(const Suite& suite, std::span<const SuiteFigures> figures) {
  std::vector<Cells> rows{
      {"experiment", "of", "hardware", "TFLOP/s a GPU", "best", "MFU %", "tokens/s a GPU", "speed-up"}};
  for (const SuiteFigures& f : figures) {
    std::vector<Cells> of_others;
    for (const PublishedFigures& p : suite.published) {
      if (p.experiment != f.name) continue;
      of_others.push_back({f.name, p.source, p.hardware, cell(p.tflops, "{:.4g}"),
                           cell(p.best_tflops, "{:.4g}"), percent(p.mfu), cell(p.tokens_per_s, "{:.0f}"),
                           cell(p.speedup, "{:.2f}")});
    }
    if (of_others.empty()) continue;
    rows.push_back({f.name, "hstu", f.device.empty() ? f.state : fmt::format("{} x {}", f.ranks, f.device),
                    cell(f.tflops, "{:.4g}"), cell(f.best_tflops, "{:.4g}"), percent(f.mfu),
                    cell(f.tokens_per_s, "{:.0f}"), cell(f.speedup, "{:.2f}")});
    rows.insert(rows.end(), of_others.begin(), of_others.end());
  }
  return rows;
}

std::string suite_csv(std::span<const SuiteFigures> figures) {
  std::string text =
      "experiment,state,device,ranks,steps,step_ms,tflops,median_tflops,best_tflops,mfu,median_mfu,best_mfu,"
      "tokens_per_s,samples_per_s,memory_gib,planned_gib,balance_before,balance_after,exposed_share,speedup,"
      "days_per_"
      "epoch\n";
  const auto number = [](const std::optional<double>& value) {
    return value ? fmt::format("{:.6g}", *value) : std::string();
  };
  for (const SuiteFigures& f : figures) {
    text += fmt::format("{},{},{},{},{}", f.name, csv_field(f.state), csv_field(f.device), f.ranks, f.steps);
    for (const std::optional<double>& value :
         {std::optional(f.step_ms), f.tflops, f.median_tflops, f.best_tflops, f.mfu, f.median_mfu, f.best_mfu,
          std::optional(f.tokens_per_s), std::optional(f.samples_per_s), std::optional(f.memory_gib),
          f.planned_gib, f.balance_before, f.balance_after, f.exposed_share, f.speedup,
          std::optional(f.days_per_epoch)})
      text += "," + number(value);
    text += "\n";
  }
  return text;
}

std::vector<std::pair<std::string, std::string>> suite_report(const Suite& suite,
                                                              std::span<const SuiteFigures> figures) {
  const auto charts = charts_of(suite, figures);
  std::vector<std::pair<std::string, std::string>> files{
      {"report.md", markdown_report(suite, figures, charts)},
      {"report.csv", suite_csv(figures)},
      {"report.html", page(suite, figures, charts)}};
  for (const auto& [file, chart] : charts)
    if (std::string svg = bars_svg(chart, true); !svg.empty()) files.emplace_back(file, std::move(svg));
  return files;
}

}  // namespace hstu
