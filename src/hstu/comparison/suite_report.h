// The report of a suite: tables as Markdown and CSV, charts as SVG, and one page with all of them.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "hstu/comparison/suite_figures.h"
#include "hstu/report/page.h"

namespace hstu {

// A header and a row for each experiment.
std::vector<Cells> suite_table(std::span<const SuiteFigures> figures);
// Ours beside others', each with its hardware; a header alone if nothing was published.
std::vector<Cells> published_table(const Suite& suite, std::span<const SuiteFigures> figures);

// Raw numbers, with the names of the keys in the header; empty where there is none.
std::string suite_csv(std::span<const SuiteFigures> figures);

// The report as files by name: report.md, report.csv, report.html and the charts.
std::vector<std::pair<std::string, std::string>> suite_report(const Suite& suite,
                                                              std::span<const SuiteFigures> figures);

}  // namespace hstu
