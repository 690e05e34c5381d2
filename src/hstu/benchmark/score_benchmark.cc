#include "hstu/benchmark/score_benchmark.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <thread>
#include <unordered_set>
#include <utility>

#include "hstu/base/clock.h"
#include "hstu/base/error.h"
#include "hstu/base/random.h"
#include "hstu/device/machine.h"
#include "hstu/score/request_queue.h"
#include "hstu/score/request_scorer.h"
#include "hstu/tensor/stage_timer.h"

namespace hstu {
namespace {

constexpr std::int64_t kWarmup = 5;

struct Sizes {
  std::int64_t history, items, users;
};

// Requests with other candidates in each round, and histories that end with other events.
class RandomRequests {
 public:
  // `first`: the lowest user.
  RandomRequests(const ScoreBenchmarkOptions& o, const Sizes& sizes, const RequestScorer& scorer,
                 std::int64_t first = 0)
      : options_(o),
        items_(scorer.ranks() ? sizes.items : 0),
        requests_(static_cast<std::size_t>(sizes.users)) {
    if (items_ > o.ids)
      fail_usage("--items: {} candidates that differ need as many ids, found --ids {}", items_, o.ids);
    const std::size_t columns = scorer.form().columns();
    std::int64_t user = first;
    for (ScoreRequest& request : requests_) {
      request.user = user++;
      request.events.emplace();
      request.events->context.resize(columns);
      request.context.assign(columns, 1);
      if (!scorer.ranks()) request.asked = Asked::top, request.top = sizes.items;
      fill(request, sizes.history);
    }
  }

  std::vector<const ScoreRequest*> next() {
    std::vector<const ScoreRequest*> all;
    for (ScoreRequest& request : requests_) {
      std::vector<std::int64_t>& items = request.events->item;
      std::generate(items.end() - std::min(options_.new_events, std::ssize(items)), items.end(),
                    [&] { return item(); });
      draw_candidates(request.items);
      all.push_back(&request);
    }
    return all;
  }

 private:
  std::int64_t item() {
    return static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(options_.ids)));
  }
  // A request asks for an item once.
  void draw_candidates(std::vector<std::int64_t>& items) {
    items.clear();
    drawn_.clear();
    while (std::ssize(items) < items_)
      if (const std::int64_t drawn = item(); drawn_.insert(drawn).second) items.push_back(drawn);
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
  std::int64_t items_;
  std::unordered_set<std::int64_t> drawn_;
  RandomStream random_{1};
  std::vector<ScoreRequest> requests_;
};

double quantile_ms(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(std::ceil(q * static_cast<double>(values.size() - 1)))];
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// Requests a second of several threads, each of which waits for the answers of so many users before it asks
// again. A batch has the requests of one of them.
double queued_requests_per_s(const ScoreBenchmarkOptions& o, const Sizes& sizes,
                             const std::shared_ptr<RequestScorer>& scorer) {
  RequestQueue queue(scorer, {.most = sizes.users});
  const auto ask = [&](std::int64_t rounds) {
    std::vector<std::thread> threads;
    for (std::int64_t client = 0; client < o.clients; ++client)
      threads.emplace_back([&, client] {
        RandomRequests requests(o, sizes, *scorer, client * sizes.users);
        for (std::int64_t round = 0; round < rounds; ++round) {
          std::vector<ScoreRequest> asked;
          for (const ScoreRequest* const request : requests.next()) asked.push_back(*request);
          queue.answer(std::move(asked));
        }
      });
    for (std::thread& thread : threads) thread.join();
  };
  ask(kWarmup);
  const Clock::time_point begin = Clock::now();
  ask(o.rounds);
  return static_cast<double>(o.clients * sizes.users * o.rounds) / seconds_since(begin);
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

Json measure(const ScoreBenchmarkOptions& o, const Sizes& sizes,
             const std::shared_ptr<RequestScorer>& shared) {
  RequestScorer& scorer = *shared;
  RandomRequests requests(o, sizes, scorer);
  const ForwardPass& pass = scorer.pass();
  std::vector<double> ms, batch, launches;
  std::int64_t replays = 0;
  for (std::int64_t round = -kWarmup; round < o.rounds; ++round) {
    const std::vector<const ScoreRequest*> asked = requests.next();
    for (const ScoreRequest* const request : asked) scorer.check(*request);
    const ForwardPass::Seconds before = pass.seconds();
    const std::int64_t replays_before = pass.replays();
    const Clock::time_point begin = Clock::now();
    scorer.answer(asked);
    if (round < 0) continue;
    ms.push_back(1000 * seconds_since(begin));
    batch.push_back(1000 * (pass.seconds().batch - before.batch));
    launches.push_back(1000 * (pass.seconds().launches - before.launches));
    replays += pass.replays() - replays_before;
  }
  const double p50 = quantile_ms(ms, 0.5);
  Json json{{"p50_ms", p50},
            {"p99_ms", quantile_ms(ms, 0.99)},
            {"min_ms", *std::min_element(ms.begin(), ms.end())},
            {"requests_per_s", 1000 * static_cast<double>(sizes.users) / mean(ms)},
            {"batch_ms", quantile_ms(batch, 0.5)},
            {"launches_ms", quantile_ms(launches, 0.5)},
            {"replayed", static_cast<double>(replays) / static_cast<double>(o.rounds)}};
  if (o.clients > 0) json["queued_requests_per_s"] = queued_requests_per_s(o, sizes, shared);
  if (o.operations) json["operations_ms"] = operations_of(o, scorer, requests);
  return json;
}

}  // namespace

Json benchmark_score(const ScoreBenchmarkOptions& o) {
  RequestScorerOptions options{.model = o.model, .device = o.device};
  const auto plain = std::make_shared<RequestScorer>(options);
  options.cache_bytes = o.cache_bytes;
  const auto cached = std::make_shared<RequestScorer>(options);
  const Device device = plain->pass().learner().compute.device();
  Json rows = Json::array();
  for (const std::int64_t history : o.histories)
    for (const std::int64_t items : o.items)
      for (const std::int64_t users : o.users) {
        const Sizes sizes{history, items, users};
        rows.push_back({{"history", history},
                        {"items", items},
                        {"users", users},
                        {"plain", measure(o, sizes, plain)},
                        {"cached", cached->cache() ? measure(o, sizes, cached) : Json()}});
      }
  Json json{{"device", to_string(device)}, {"rows", std::move(rows)}};
  const std::vector<Gpu> gpus = this_machine().nvidia.gpus;
  const auto index = static_cast<std::size_t>(device.index);
  if (!device.is_host() && index < gpus.size()) json["gpu"] = gpus[index].name;
  return json;
}

}  // namespace hstu
