#include "hstu/benchmark/score_benchmark.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "hstu/base/clock.h"
#include "hstu/base/error.h"
#include "hstu/base/random.h"
#include "hstu/device/machine.h"
#include "hstu/score/request_scorer.h"
#include "hstu/tensor/stage_timer.h"

namespace hstu {
namespace {

constexpr std::int64_t kWarmup = 5;

struct Sizes {
  std::int64_t history, items, users;
};

// Requests whose histories end with other events in each round.
class RandomRequests {
 public:
  RandomRequests(const ScoreBenchmarkOptions& o, const Sizes& sizes, std::size_t columns)
      : options_(o), requests_(static_cast<std::size_t>(sizes.users)) {
    std::int64_t user = 0;
    for (ScoreRequest& request : requests_) {
      request.user = user++;
      request.events.emplace();
      request.events->context.resize(columns);
      request.context.assign(columns, 1);
      for (std::int64_t i = 0; i < sizes.items; ++i) request.items.push_back(item());
      fill(request, sizes.history);
    }
  }

  std::vector<const ScoreRequest*> next() {
    std::vector<const ScoreRequest*> all;
    for (ScoreRequest& request : requests_) {
      std::vector<std::int64_t>& items = request.events->item;
      std::generate(items.end() - std::min(options_.new_events, std::ssize(items)), items.end(),
                    [&] { return item(); });
      all.push_back(&request);
    }
    return all;
  }

 private:
  std::int64_t item() {
    return static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(options_.ids)));
  }
  void fill(ScoreRequest& request, std::int64_t events) {
    RequestEvents& all = *request.events;
    for (std::int64_t i = 0; i < events; ++i) {
      all.item.push_back(item());
      all.time.push_back(1000 + std::ssize(all.time));
      all.action.push_back(1);
      for (auto& column : all.context) column.push_back(1);
    }
    request.time = 1000 + std::ssize(all.time);
  }

  const ScoreBenchmarkOptions& options_;
  RandomStream random_{1};
  std::vector<ScoreRequest> requests_;
};

double quantile_ms(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(std::ceil(q * static_cast<double>(values.size() - 1)))];
}

Json operations_of(const ScoreBenchmarkOptions& o, RequestScorer& scorer, RandomRequests& requests) {
  Context& compute = scorer.pass().learner().compute;
  StageTimer timer(compute.stream);
  compute.trace = &timer;
  Json sums = Json::object();
  for (std::int64_t round = 0; round < o.rounds; ++round) {
    timer.restart();
    scorer.answer(requests.next());
    for (const StageTime& range : timer.take()) {
      std::string name(range.name);
      if (range.outer < 0) name = "all";
      Json& sum = sums[name];
      sum = (sum.is_null() ? 0.0 : sum.get<double>()) + range.ms() / static_cast<double>(o.rounds);
    }
  }
  compute.trace = nullptr;
  return sums;
}

Json measure(const ScoreBenchmarkOptions& o, const Sizes& sizes, RequestScorer& scorer) {
  RandomRequests requests(o, sizes, scorer.form().columns());
  for (const ScoreRequest* const request : requests.next()) scorer.check(*request);
  std::vector<double> ms;
  for (std::int64_t round = -kWarmup; round < o.rounds; ++round) {
    const std::vector<const ScoreRequest*> asked = requests.next();
    const Clock::time_point begin = Clock::now();
    scorer.answer(asked);
    if (round >= 0) ms.push_back(1000 * seconds_since(begin));
  }
  const double p50 = quantile_ms(ms, 0.5);
  Json json{{"p50_ms", p50},
            {"p99_ms", quantile_ms(ms, 0.99)},
            {"min_ms", *std::min_element(ms.begin(), ms.end())},
            {"requests_per_s", 1000 * static_cast<double>(sizes.users) / p50}};
  if (o.operations) json["operations_ms"] = operations_of(o, scorer, requests);
  return json;
}

}  // namespace

Json benchmark_score(const ScoreBenchmarkOptions& o) {
  RequestScorerOptions options{.model = o.model, .device = o.device};
  RequestScorer plain(options);
  if (!plain.ranks()) fail_usage("{}: the model does not rank candidates", o.model.string());
  options.cache_bytes = o.cache_bytes;
  RequestScorer cached(options);
  const Device device = plain.pass().learner().compute.device();
  Json rows = Json::array();
  for (const std::int64_t history : o.histories)
    for (const std::int64_t items : o.items)
      for (const std::int64_t users : o.users) {
        const Sizes sizes{history, items, users};
        rows.push_back({{"history", history},
                        {"items", items},
                        {"users", users},
                        {"plain", measure(o, sizes, plain)},
                        {"cached", cached.cache() ? measure(o, sizes, cached) : Json()}});
      }
  Json json{{"device", to_string(device)}, {"rows", std::move(rows)}};
  const std::vector<Gpu> gpus = this_machine().nvidia.gpus;
  const auto index = static_cast<std::size_t>(device.index);
  if (!device.is_host() && index < gpus.size()) json["gpu"] = gpus[index].name;
  return json;
}

}  // namespace hstu
