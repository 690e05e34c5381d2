// Results of a batch against the CPU: some rows of it, each of which costs n D alone, so that samples may be
// long and batches large.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "attention/device_case.h"
#include "attention/errors.h"

namespace hstu {

// A row of a sample: o and dq of the query it is, dk and dv of the key.
struct SampledRow {
  std::size_t sample;
  int head, row;
};

// The first and the last row, and `more` of the others: half of them at random, half where something changes
// (borders of blocks, contexts, history and groups of targets). All rows where there are no more.
inline std::vector<int> choose_rows(const SampleMask& m, std::size_t more, std::mt19937& random) {
  if (m.n <= static_cast<int>(more) + 2) {
    std::vector<int> all(static_cast<std::size_t>(m.n));
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  std::vector<int> borders;
  for (const int border : {64, 128, 192, m.n / 2 / 64 * 64, m.n / 64 * 64, m.n / 128 * 128, m.c, m.h,
                           m.h + m.group, m.n - m.group, m.h - m.left})
    for (const int row : {border - 1, border}) borders.push_back(row);
  std::shuffle(borders.begin(), borders.end(), random);
  borders.resize(std::min(borders.size(), (more + 1) / 2));
  std::vector<int> rows{0, m.n - 1};
  rows.insert(rows.end(), borders.begin(), borders.end());
  for (std::size_t i = 0; i < more - more / 2; ++i)
    rows.push_back(static_cast<int>(random() % static_cast<unsigned>(m.n)));
  std::erase_if(rows, [&](int row) { return row < 0 || row >= m.n; });
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  return rows;
}

// Rows of the samples [from, to), of one head each.
template <typename T>
std::vector<SampledRow> choose_rows(const HostBatch<T>& batch, std::size_t from, std::size_t to,
                                    std::size_t more) {
  std::mt19937 random(5);
  std::vector<SampledRow> all;
  for (std::size_t b = from; b < to; ++b) {
    for (const int row : choose_rows(batch.mask_of(b), more, random)) {
      const auto heads = static_cast<unsigned>(batch.description().heads);
      all.push_back({b, static_cast<int>(random() % heads), row});
    }
  }
  return all;
}

// What was found of one row; of each output the sum of squares of the exact values, too.
struct RowErrors {
  Errors errors;
  std::array<double, 4> size{};
};

template <typename T>
RowErrors compare_row(const HostBatch<T>& batch, const SampledRow& at, const std::vector<T>& outputs) {
  const DeviceCase& c = batch.description();
  const auto load = [&](InputPart part, int i, double* to) { batch.load(at.sample, at.head, part, i, to); };
  const SampleMask mask = batch.mask_of(at.sample);
  const auto alpha = static_cast<double>(batch.alpha());
  const double scale = batch.scale(at.sample);
  const AttentionResult exact =
      reference_row<double>(mask, c.head_dim, at.row, load, alpha, scale, [](double x) { return x; });
  const AttentionResult rounded = reference_row<float>(mask, c.head_dim, at.row, load, alpha, scale,
                                                       [](double x) { return round_to<T>(x); });
  RowErrors row;
  for (std::size_t i = 0; i < 4; ++i) {
    for (std::size_t d = 0; d < exact.o.size(); ++d) {
      const std::size_t column = (i * static_cast<std::size_t>(c.heads) + static_cast<std::size_t>(at.head)) *
                                 static_cast<std::size_t>(c.head_dim);
      row.errors.add(i, to_double(outputs[column + d]), rounded[i][d], exact[i][d]);
      row.size[i] += exact[i][d] * exact[i][d];
    }
  }
  return row;
}

// `read(row)` gives o, dq, dk and dv of all heads of a row of the batch. The rule of errors.h holds over all
// rows together, where long ones weigh most; that no row is wrong as such is asked of each: an error of at
// most four times that of the rounded computation, 3 % of its own size and 0.2 % of a usual row's.
template <typename T, typename Read>
std::string compare_rows(const HostBatch<T>& batch, const std::vector<SampledRow>& rows, const Read& read) {
  if (rows.empty()) return "no row was compared";
  std::vector<std::vector<T>> outputs;
  for (const SampledRow& at : rows) outputs.push_back(read(batch.offsets()[at.sample] + at.row));
  std::vector<RowErrors> found(rows.size());
  parallel_blocks(static_cast<std::int64_t>(rows.size()), 1, [&](std::int64_t i, std::int64_t) {
    const auto at = static_cast<std::size_t>(i);
    found[at] = compare_row(batch, rows[at], outputs[at]);
  });
  RowErrors all;
  for (const RowErrors& one : found) {
    all.errors.merge(one.errors);
    for (std::size_t i = 0; i < 4; ++i) all.size[i] += one.size[i] / static_cast<double>(rows.size());
  }
  std::string text = all.errors.complaint();
  int wrong = 0;
  for (std::size_t at = 0; at < rows.size(); ++at) {
    for (std::size_t i = 0; i < 4; ++i) {
      const double error = std::sqrt(found[at].errors.found[i].sum);
      const double most = 4 * std::sqrt(found[at].errors.rounded[i].sum) + std::sqrt(found[at].size[i]) / 32 +
                          std::sqrt(all.size[i]) / 512 + 1e-30;
      if (error <= most || ++wrong > 10) continue;
      text +=
          fmt::format("{} of row {} of {}, head {}: error {:.3g}, at most {:.3g} expected\n", kOutputNames[i],
                      rows[at].row, describe(batch.mask_of(rows[at].sample)), rows[at].head, error, most);
    }
  }
  return text;
}

}  // namespace hstu
