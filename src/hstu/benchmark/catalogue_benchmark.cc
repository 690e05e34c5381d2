#include "hstu/benchmark/catalogue_benchmark.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <vector>

#include "hstu/base/clock.h"
#include "hstu/base/error.h"
#include "hstu/base/median.h"
#include "hstu/base/random.h"
#include "hstu/benchmark/random_rows.h"
#include "hstu/device/machine.h"
#include "hstu/experiment/device_choice.h"
#include "hstu/loss/full_softmax.h"
#include "hstu/objective/catalogue_ranks.h"
#include "hstu/ops/convert.h"
#include "hstu/ops/norm.h"

namespace hstu {
namespace {

constexpr double kTemperature = 0.05;

// A table of items without its directory.
struct Items {
  std::vector<std::int64_t> ids;
  Tensor rows, gradient;
  CatalogueRows view;

  Items(const CatalogueBenchmarkOptions& o, const Context& context)
      : ids(static_cast<std::size_t>(o.items)), rows(random_rows(o.items, o.width, context)) {
    std::iota(ids.begin(), ids.end(), std::int64_t{0});
    if (o.positions > 0) gradient = Tensor::zeros(rows.shape(), DType::f32, context);
    view = {.size = o.items,
            .width = o.width,
            .ids = ids.data(),
            .device_ids = {},
            .read =
                [this, stream = context.stream](std::int64_t first, Tensor& block) {
                  block.copy_from(rows.row_range(first, first + block.rows()), stream);
                },
            .gradient = [this] { return gradient; }};
    if (!context.device().is_host())
      view.device_ids = Tensor::from<std::int64_t>({o.items}, ids).copy(context);
  }
};

Tensor unit_vectors(std::int64_t n, const CatalogueBenchmarkOptions& o, const Context& context) {
  Tape tape(context, false);
  return ops::l2_normalise(tape, Variable::constant(random_rows(n, o.width, context)), 1e-6).value();
}

std::vector<std::int64_t> some_items(std::int64_t n, std::int64_t items) {
  RandomStream random{3};
  std::vector<std::int64_t> some;
  for (std::int64_t i = 0; i < n; ++i)
    some.push_back(static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(items))));
  return some;
}

Json times(std::int64_t rounds, const Context& context, const std::function<void()>& work) {
  std::vector<double> ms;
  for (std::int64_t round = -2; round < rounds; ++round) {
    context.stream.synchronize();
    const Clock::time_point begin = Clock::now();
    work();
    context.stream.synchronize();
    if (round >= 0) ms.push_back(1000 * seconds_since(begin));
  }
  return {{"median_ms", median(ms)},
          {"min_ms", *std::min_element(ms.begin(), ms.end())},
          {"max_ms", *std::max_element(ms.begin(), ms.end())}};
}

Json softmax(const CatalogueBenchmarkOptions& o, const Items& items, const Context& context) {
  const bool half = o.precision == Precision::bf16 && !context.device().is_host();
  const Tensor exact = unit_vectors(o.positions, o, context);
  Tape converts(context, false);
  const Tensor vectors =
      half ? ops::convert(converts, Variable::constant(exact), DType::bf16).value() : exact;
  const Tensor targets =
      Tensor::from<std::int64_t>({o.positions}, some_items(o.positions, o.items)).copy(context);
  const std::int64_t before = context.memory->figures().in_use;
  std::int64_t gradients = 0;
  Json json = times(o.rounds, context, [&] {
    Tape tape(context);
    const Variable leaf(vectors);
    tape.backward(loss::full_softmax(tape, leaf, targets, items.view,
                                     {.scale = 1 / kTemperature, .unit = true, .longest = 1},
                                     static_cast<double>(o.positions)));
    gradients = static_cast<std::int64_t>(leaf.gradient().bytes());
  });
  const std::int64_t peak = context.memory->figures().peak - before - gradients;
  json["precision"] = half ? "bf16" : "fp32";
  json["peak_mib"] = static_cast<double>(peak) / (1 << 20);
  const double products = context.device().is_host() || !half ? 6 : 8;
  json["tflops"] = products * static_cast<double>(o.positions) * static_cast<double>(o.items) *
                   static_cast<double>(o.width) / json.at("median_ms").get<double>() * 1e-9;
  return json;
}

CatalogueQueryList queries_of(const CatalogueBenchmarkOptions& o, const Context& context) {
  const Tensor vectors = unit_vectors(o.queries, o, context).to_host(context.stream);
  CatalogueQueryList queries;
  queries.vectors.assign(vectors.data<float>(), vectors.data<float>() + vectors.size());
  queries.excluded_offsets.push_back(0);
  RandomStream random{4};
  for (std::int64_t q = 0; q < o.queries; ++q) {
    std::vector<std::int64_t> seen;
    for (std::int64_t i = 0; i < o.excluded; ++i)
      seen.push_back(static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(o.items))));
    std::sort(seen.begin(), seen.end());
    seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
    queries.excluded.insert(queries.excluded.end(), seen.begin(), seen.end());
    queries.excluded_offsets.push_back(std::ssize(queries.excluded));
  }
  return queries;
}

void add_rate(const CatalogueBenchmarkOptions& o, Json& json) {
  json["queries_per_s"] = 1000 * static_cast<double>(o.queries) / json.at("median_ms").get<double>();
}

}  // namespace

Json benchmark_catalogue(const CatalogueBenchmarkOptions& o) {
  const Device device = choose_device(o.device).device;
  const Context context = open_device(device);
  const Items items(o, context);
  Json json{{"device", to_string(device)}, {"items", o.items}, {"width", o.width}};
  const std::vector<Gpu> gpus = this_machine().nvidia.gpus;
  const auto index = static_cast<std::size_t>(device.index);
  if (!device.is_host() && index < gpus.size()) json["gpu"] = gpus[index].name;
  if (o.positions > 0) {
    json["positions"] = o.positions;
    json["softmax"] = softmax(o, items, context);
  }
  if (o.queries == 0) return json;
  const CatalogueQueryList queries = queries_of(o, context);
  CatalogueScores scores{.rows = items.view, .unit = true, .context = context};
  if (!device.is_host()) scores.block_rows = kGpuCatalogueBlock;
  json["queries"] = o.queries;
  json["k"] = o.k;
  CatalogueBlocks blocks(scores, kept_by_server(scores));
  json["top"] = times(o.rounds, context, [&] { catalogue_top(blocks, queries, o.k, one_rank()); });
  add_rate(o, json["top"]);
  const std::vector<std::int64_t> targets = some_items(o.queries, o.items);
  json["ranks"] = times(o.rounds, context, [&] { catalogue_ranks(blocks, queries, targets, one_rank()); });
  add_rate(o, json["ranks"]);
  return json;
}

}  // namespace hstu
