// The contract of a table with limits (docs/tables.md) in the simplest form: a std::map and loops over all
// rows. Rows have one value each, begin at 1, and are updated by rowwise Adagrad.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "hstu/embedding/row_limiter.h"

namespace hstu::testing_embedding {

class TableModel {
 public:
  struct Row {
    float value = 1.0f, state = 0.0f;
    std::int64_t seen = 0;  // step
    std::int64_t cell = 0;  // of event time
    std::int64_t score = 0;
  };

  TableModel(std::int64_t nominal, const RowLimits& limits) : nominal_(nominal), limits_(limits) {}

  bool is_id(std::int64_t id) const { return id >= 0 && id < nominal_; }
  float value(std::int64_t id) const {
    if (!is_id(id)) return 0.0f;
    const auto row = rows_.find(id);
    return row == rows_.end() ? 1.0f : row->second.value;
  }

  // A whole step: occurrences, value and gradient (1 or -1) by id; a gradient of 0 is none.
  struct Seen {
    std::int64_t occurrences = 0;
    std::int64_t value = std::numeric_limits<std::int64_t>::min();  // of a custom score
    float gradient = 0;
  };
  void step(const std::map<std::int64_t, Seen>& ids, std::int64_t time, double learning_rate) {
    ++step_;
    time_ = step_ == 1 ? time : std::max(time_, time);
    std::vector<std::int64_t> created;
    for (const auto& [id, seen] : ids) {
      if (!is_id(id)) continue;
      ++(rows_.contains(id) ? counts_.hits : counts_.misses);
      if (rows_.contains(id) || limits_.admit_after == 0) {
        if (!rows_.contains(id)) created.push_back(id);
        Row& row = rows_[id];
        if (seen.gradient != 0) {
          row.state += 1.0f;
          row.value -=
              static_cast<float>(learning_rate / (std::sqrt(double{row.state}) + 1e-8)) * seen.gradient;
        }
        see(row, seen.occurrences, seen.value);
        continue;
      }
      waiting_[id] += seen.occurrences;
      if (waiting_[id] < limits_.admit_after) continue;
      see(rows_[id], waiting_[id], seen.value);
      waiting_.erase(id);
      created.push_back(id);
      ++counts_.admitted;
    }
    counts_.inserted += static_cast<std::int64_t>(created.size());
    expire();
    shrink(created);
  }

  const std::map<std::int64_t, Row>& rows() const { return rows_; }
  const std::map<std::int64_t, std::int64_t>& waiting() const { return waiting_; }
  const RowCounts& counts() const { return counts_; }

 private:
  std::int64_t width() const { return std::max<std::int64_t>(1, limits_.ttl / 64); }
  std::int64_t cell() const { return time_ / width(); }

  void see(Row& row, std::int64_t n, std::int64_t value) {
    const bool is_new = row.seen == 0;
    row.seen = step_;
    row.cell = cell();
    if (limits_.evict == Evict::lru) row.score = step_;
    if (limits_.evict == Evict::lfu) row.score += n;
    // Twice as much every half-life: exact for the few half-lives of a test.
    if (limits_.evict == Evict::lru_lfu) row.score += n << (step_ / limits_.half_life);
    if (limits_.evict == Evict::step && row.score == 0) row.score = step_;
    if (limits_.evict == Evict::custom) row.score = is_new ? value : std::max(row.score, value);
  }

  void expire() {
    if (limits_.ttl == 0) return;
    const std::int64_t cells = (limits_.ttl + width() - 1) / width();
    counts_.expired += static_cast<std::int64_t>(
        std::erase_if(rows_, [&](const auto& row) { return row.second.cell < cell() - cells; }));
  }

  void shrink(std::vector<std::int64_t> created) {
    std::sort(created.rbegin(), created.rend());
    while (limits_.capacity > 0 && static_cast<std::int64_t>(rows_.size()) > limits_.capacity) {
      if (limits_.evict == Evict::never) {
        if (created.empty()) return;
        rows_.erase(created.front());
        created.erase(created.begin());
        ++counts_.refused;
        --counts_.inserted;
        continue;
      }
      const auto order = [&](const auto& row) {
        return std::tuple(row.second.seen == step_, row.second.score, row.first);
      };
      rows_.erase(std::min_element(rows_.begin(), rows_.end(),
                                   [&](const auto& a, const auto& b) { return order(a) < order(b); }));
      ++counts_.evicted;
    }
  }

  std::int64_t nominal_;
  RowLimits limits_;
  std::map<std::int64_t, Row> rows_;
  std::map<std::int64_t, std::int64_t> waiting_;
  RowCounts counts_;
  std::int64_t step_ = 0, time_ = 0;
};

}  // namespace hstu::testing_embedding
