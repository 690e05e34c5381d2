#include "hstu/benchmark/embedding_benchmark.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <vector>

#include "hstu/base/clock.h"
#include "hstu/base/error.h"
#include "hstu/base/median.h"
#include "hstu/base/random.h"
#include "hstu/device/machine.h"
#include "hstu/embedding/row_visits.h"
#include "hstu/rows/unique.h"

namespace hstu {
namespace {

double ms_since(Clock::time_point start) {
  return 1000 * seconds_since(start);
}

// Of all threads of this process.
double cpu_ms() {
  return 1000.0 * static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

std::vector<TableConfig> configs_of(const EmbeddingBenchmarkOptions& o) {
  std::vector<TableConfig> configs;
  for (std::int64_t t = 0; t < o.tables; ++t) {
    TableConfig config{.name = fmt::format("table{}", t), .rows = o.rows, .dim = o.dim};
    config.limits = {.capacity = o.capacity,
                     .evict = o.capacity > 0 ? o.evict : Evict::never,
                     .admit_after = o.admit_after};
    configs.push_back(config);
  }
  return configs;
}

struct Drawn {
  std::vector<std::int64_t> ids, occurrences;  // (n) distinct
};

// By the inverse of the distribution function of a continuous power law on [1, rows].
Drawn draw(const EmbeddingBenchmarkOptions& o, RandomStream& random) {
  const double gamma = 1.0 - o.power, most = std::pow(static_cast<double>(o.rows), gamma);
  std::vector<std::int64_t> all(static_cast<std::size_t>(std::max<std::int64_t>(1, o.ids / o.tables)));
  for (std::int64_t& id : all) {
    const double rank = gamma == 0 ? std::pow(static_cast<double>(o.rows), random.uniform())
                                   : std::pow(random.uniform() * (most - 1.0) + 1.0, 1.0 / gamma);
    const auto place = std::clamp<std::int64_t>(std::llround(std::floor(rank)) - 1, 0, o.rows - 1);
    id = static_cast<std::int64_t>(mix64(static_cast<std::uint64_t>(place)) %
                                   static_cast<std::uint64_t>(o.rows));
  }
  const UniqueIds distinct = unique(all);
  Drawn drawn{distinct.ids, std::vector<std::int64_t>(distinct.ids.size(), 0)};
  for (const std::int32_t place : distinct.index) ++drawn.occurrences[static_cast<std::size_t>(place)];
  return drawn;
}

}  // namespace

Json benchmark_embedding(const EmbeddingBenchmarkOptions& o) {
  TableSet tables(configs_of(o), RowOptimizer{}, o.seed);
  RandomStream random{.key = derive_key(o.seed, "embedding benchmark")};
  Tensor gradients;
  std::vector<double> lookup, gather, update, end, whole, cpu;
  std::int64_t distinct = 0;
  for (std::int64_t step = 0; step < o.warmup + o.steps; ++step) {
    std::vector<Drawn> drawn;
    for (std::int64_t t = 0; t < o.tables; ++t) drawn.push_back(draw(o, random));
    RowVisits visits(tables);
    double parts[4] = {};
    const double cpu_before = cpu_ms();
    for (std::size_t t = 0; t < drawn.size(); ++t) {
      const auto& [ids, occurrences] = drawn[t];
      const std::int64_t n = std::ssize(ids);
      if (!gradients.defined() || gradients.rows() < n)
        gradients =
            Tensor::from<float>({n, o.dim}, std::vector<float>(static_cast<std::size_t>(n * o.dim), 0.01f));
      Clock::time_point start = Clock::now();
      const Handles selected = tables[t].select(ids, RowAccess::train);
      parts[0] += ms_since(start);
      start = Clock::now();
      tables[t].gather(selected);
      parts[1] += ms_since(start);
      start = Clock::now();
      tables[t].update(selected, gradients.row_range(0, n), {.learning_rate = 0.01});
      parts[2] += ms_since(start);
      start = Clock::now();
      visits.add(t, ids, occurrences, numbers(selected.host_slots), occurrences);
      parts[3] += ms_since(start);
      if (step >= o.warmup) distinct += static_cast<std::int64_t>(ids.size());
    }
    const Clock::time_point start = Clock::now();
    visits.end_step(one_rank(), step);
    parts[3] += ms_since(start);
    if (step < o.warmup) continue;
    cpu.push_back(cpu_ms() - cpu_before);
    lookup.push_back(parts[0]);
    gather.push_back(parts[1]);
    update.push_back(parts[2]);
    end.push_back(parts[3]);
    whole.push_back(parts[0] + parts[1] + parts[2] + parts[3]);
  }
  RowCounts counts;
  for (std::size_t t = 0; t < tables.size(); ++t) {
    if (!tables[t].has_limits()) continue;
    counts.hits += tables[t].counts().hits;
    counts.misses += tables[t].counts().misses;
    counts.evicted += tables[t].counts().evicted;
  }
  const auto rows = static_cast<double>(std::max<std::int64_t>(1, tables.rows_alive()));
  Json result{{"lookup_ms", median(lookup)},
              {"gather_ms", median(gather)},
              {"update_ms", median(update)},
              {"end_ms", median(end)},
              {"step_ms", median(whole)},
              {"step_cpu_ms", median(cpu)},
              {"distinct", distinct / o.steps},
              {"rows", tables.rows_alive()},
              {"bytes_per_row", static_cast<double>(tables.bytes()) / rows},
              {"payload_bytes", (o.dim + tables[0].state_width()) * std::int64_t{sizeof(float)}},
              {"evicted", counts.evicted},
              {"peak_rss_mib", peak_rss_mib()}};
  const std::int64_t seen = counts.hits + counts.misses;
  result["hits"] = seen > 0 ? Json(static_cast<double>(counts.hits) / static_cast<double>(seen)) : Json();
  return result;
}

}  // namespace hstu
