#include "hstu/suggestion/column_summary.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include <fmt/format.h>

#include "hstu/columns/file_format.h"
#include "hstu/columns/typed_texts.h"

namespace hstu {
namespace {

constexpr std::size_t kShownTexts = 8;
constexpr std::size_t kShownBytes = 40;  // of a text

bool is_null(const RawColumn& column, std::size_t row) {
  return !column.nulls.empty() && column.nulls[row] != 0;
}

template <typename Number>
void summarize_numbers(const RawColumn& column, const std::vector<Number>& values, ColumnSummary& summary) {
  std::unordered_set<Number> distinct;
  Number min{}, max{};
  for (std::size_t r = 0; r < values.size(); ++r) {
    if (is_null(column, r)) continue;
    min = distinct.empty() ? values[r] : std::min(min, values[r]);
    max = distinct.empty() ? values[r] : std::max(max, values[r]);
    distinct.insert(values[r]);
  }
  summary.distinct = static_cast<std::int64_t>(distinct.size());
  summary.min = static_cast<double>(min);
  summary.max = static_cast<double>(max);
  summary.range = min == max ? fmt::format("{}", min) : fmt::format("{} to {}", min, max);
}

void summarize_texts(const RawColumn& column, ColumnSummary& summary) {
  std::vector<std::int64_t> counts(column.texts.size());
  for (const std::int64_t code : column.integers) {
    if (code >= 0) ++counts[static_cast<std::size_t>(code)];
  }
  std::vector<std::size_t> order;
  for (std::size_t code = 0; code < counts.size(); ++code) {
    if (counts[code] > 0) order.push_back(code);
  }
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return counts[a] != counts[b] ? counts[a] > counts[b] : column.texts[a] < column.texts[b];
  });
  summary.distinct = static_cast<std::int64_t>(order.size());
  constexpr std::size_t kKept = 64;
  for (const std::size_t code : std::span(order).first(std::min(order.size(), kKept)))
    summary.texts.push_back(column.texts[code]);
}

}  // namespace

std::string ColumnSummary::text() const {
  if (distinct == 0) return "no value";
  if (kind != RawColumn::Kind::kText) return range;
  std::vector<std::string> shown;
  for (const std::string& word : std::span(texts).first(std::min(texts.size(), kShownTexts)))
    shown.push_back(word.size() > kShownBytes ? word.substr(0, kShownBytes) + "..." : word);
  const bool all = static_cast<std::int64_t>(shown.size()) == distinct;
  return fmt::format("{}{}", fmt::join(shown, ", "), all ? "" : fmt::format(", ... ({} texts)", distinct));
}

ColumnSummary summarize(const RawColumn& column) {
  ColumnSummary summary;
  summary.name = column.name;
  summary.type_name = column.type_name;
  summary.kind = column.kind;
  const bool real = column.kind == RawColumn::Kind::kReal;
  summary.rows = static_cast<std::int64_t>(real ? column.reals.size() : column.integers.size());
  summary.nulls = std::count(column.nulls.begin(), column.nulls.end(), 1);
  if (column.kind == RawColumn::Kind::kText) {
    summarize_texts(column, summary);
  } else if (real) {
    summarize_numbers(column, column.reals, summary);
    summary.whole = std::all_of(column.reals.begin(), column.reals.end(),
                                [](double value) { return std::trunc(value) == value; });
  } else {
    summarize_numbers(column, column.integers, summary);
  }
  return summary;
}

std::vector<ColumnSummary> summarize_columns(const Path& file, std::span<const std::string> columns,
                                             const ReadOptions& options) {
  const auto source = open_columns(file, columns, options);
  const bool csv = format_of(file) != FileFormat::kParquet;
  RawBatch batch;
  std::vector<ColumnSummary> summaries;
  if (!source->next(batch)) batch.columns.clear();
  for (const RawColumn& column : batch.columns) {
    // Texts of Parquet are texts; those of CSV may be anything.
    summaries.push_back(summarize(csv ? typed(batch, column) : column));
  }
  return summaries;
}

}  // namespace hstu
