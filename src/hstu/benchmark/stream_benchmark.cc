#include "hstu/benchmark/stream_benchmark.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <deque>
#include <limits>
#include <span>
#include <vector>

#include "hstu/base/error.h"
#include "hstu/base/random.h"
#include "hstu/device/machine.h"
#include "hstu/embedding/row_visits.h"
#include "hstu/rows/unique.h"

namespace hstu {
namespace {

constexpr std::int64_t kParts = 10;

// The rows that a table of the eviction "lru" keeps.
class SimulatedTable {
 public:
  SimulatedTable(std::int64_t ids, std::int64_t capacity)
      : last_step_(static_cast<std::size_t>(ids), 0),
        seen_(static_cast<std::size_t>(ids), false),
        capacity_(capacity) {}

  // `ids`: distinct ones of a step. Gives how many had a row.
  std::int64_t step(std::vector<std::int64_t> ids) {
    ++step_;
    std::int64_t hits = 0;
    for (const std::int64_t id : ids) {
      std::uint32_t& last = last_step_[static_cast<std::size_t>(id)];
      if (last > 0)
        ++hits;
      else
        ++rows_;
      last = step_;
      if (!seen_[static_cast<std::size_t>(id)]) ++distinct_;
      seen_[static_cast<std::size_t>(id)] = true;
    }
    std::sort(ids.begin(), ids.end());
    steps_.push_back({step_, 0, {ids.begin(), ids.end()}});
    while (rows_ > capacity_) {
      OfStep& oldest = steps_.front();
      if (oldest.next == oldest.ids.size()) {
        steps_.pop_front();
        continue;
      }
      std::uint32_t& last = last_step_[oldest.ids[oldest.next++]];
      if (last != oldest.step) continue;  // a later step has the id too
      last = 0;
      --rows_;
    }
    return hits;
  }
  std::int64_t distinct() const { return distinct_; }

 private:
  struct OfStep {
    std::uint32_t step;
    std::size_t next;  // the ids before it have left
    std::vector<std::uint32_t> ids;
  };
  std::vector<std::uint32_t> last_step_;  // of the ids that have a row; 0: none
  std::vector<bool> seen_;
  std::deque<OfStep> steps_;
  std::int64_t capacity_, rows_ = 0, distinct_ = 0;
  std::uint32_t step_ = 0;
};

// By the inverse of the distribution function of a continuous power law on [1, ids + 1), in an order mixed by
// a prime that is no divisor of `ids`.
std::vector<std::int64_t> draw(const StreamOptions& o, RandomStream& random) {
  constexpr std::uint64_t kPrime = 2'654'435'761u;
  const double gamma = 1.0 - o.power, most = std::pow(static_cast<double>(o.ids + 1), gamma);
  std::vector<std::int64_t> ids(static_cast<std::size_t>(o.step));
  for (std::int64_t& id : ids) {
    const double rank = std::pow(random.uniform() * (most - 1.0) + 1.0, 1.0 / gamma);
    const auto place = std::clamp<std::int64_t>(static_cast<std::int64_t>(rank) - 1, 0, o.ids - 1);
    id = static_cast<std::int64_t>(static_cast<std::uint64_t>(place) * kPrime %
                                   static_cast<std::uint64_t>(o.ids));
  }
  return ids;
}

double cpu_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

}  // namespace

Json stream_ids(const StreamOptions& o, const std::function<void(std::int64_t)>& progress) {
  check(o.ids <= std::numeric_limits<std::uint32_t>::max(), "expected at most 2^32 - 1 ids, found {}", o.ids);
  check(o.power != 1.0, "expected a power other than 1");
  TableConfig config{.name = "stream", .rows = o.ids, .dim = o.dim};
  config.limits = {.capacity = o.capacity, .evict = Evict::lru};
  config.optimizer = RowOptimizerKind::sgd;
  TableSet tables({config}, RowOptimizer{}, o.seed);
  SimulatedTable simulated(o.ids, o.capacity);
  RandomStream random{.key = derive_key(o.seed, "stream")};
  const std::int64_t steps = std::max<std::int64_t>(1, o.events / o.step);
  std::int64_t lookups = 0, hits = 0, simulated_hits = 0;
  Tensor gradients;
  Json table_mib = Json::array(), rss = Json::array();
  const double begin = cpu_seconds();
  for (std::int64_t step = 1; step <= steps; ++step) {
    const UniqueIds distinct = unique(draw(o, random));
    std::vector<std::int64_t> occurrences(distinct.ids.size(), 0);
    for (const std::int32_t place : distinct.index) ++occurrences[static_cast<std::size_t>(place)];
    const Handles selected = tables[0].select(distinct.ids, RowAccess::train);
    const std::int64_t n = std::ssize(distinct.ids);
    if (!gradients.defined() || gradients.rows() < n)
      gradients =
          Tensor::from<float>({n, o.dim}, std::vector<float>(static_cast<std::size_t>(n * o.dim), 0.01f));
    tables[0].update(selected, gradients.row_range(0, n), {.learning_rate = 0.01});
    RowVisits visits(tables);
    visits.add(0, distinct.ids, occurrences, numbers(selected.host_slots));
    visits.end_step(one_rank(), step);

    lookups += static_cast<std::int64_t>(distinct.ids.size());
    hits = tables[0].counts().hits;
    simulated_hits += simulated.step(distinct.ids);
    check(hits == simulated_hits, "step {}: expected {} hits so far, found {}", step, simulated_hits, hits);
    if (step * kParts / steps != (step - 1) * kParts / steps) {
      table_mib.push_back(static_cast<double>(tables.bytes()) / 0x1p20);
      rss.push_back(peak_rss_mib());
    }
    if (progress) progress(step * o.step);
  }
  return {{"events", steps * o.step},
          {"lookups", lookups},
          {"distinct", simulated.distinct()},
          {"hits", hits},
          {"simulated_hits", simulated_hits},
          {"hit_rate", static_cast<double>(hits) / static_cast<double>(lookups)},
          {"rows", tables.rows_alive()},
          {"evicted", tables[0].counts().evicted},
          {"table_mib", table_mib},
          {"peak_rss_mib", rss},
          {"cpu_s", cpu_seconds() - begin}};
}

}  // namespace hstu
