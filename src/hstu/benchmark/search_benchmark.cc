#include "hstu/benchmark/search_benchmark.h"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hstu/base/clock.h"
#include "hstu/base/median.h"
#include "hstu/base/random.h"
#include "hstu/benchmark/random_rows.h"
#include "hstu/device/machine.h"
#include "hstu/experiment/device_choice.h"
#include "hstu/kinds/semantic_ids/code_search.h"
#include "hstu/ops/convert.h"
#include "hstu/tensor/stage_timer.h"

namespace hstu {
namespace {

std::shared_ptr<const ItemCodes> random_codes(const SearchBenchmarkOptions& o) {
  RandomStream random{1};
  ItemCodes codes{.sizes = std::vector<std::int64_t>(static_cast<std::size_t>(o.levels), o.codes),
                  .items = {},
                  .codes = {}};
  for (std::int64_t i = 0; i < o.items; ++i) {
    codes.items.push_back(i);
    for (std::int64_t l = 0; l < o.levels; ++l)
      codes.codes.push_back(static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(o.codes))));
  }
  return std::make_shared<const ItemCodes>(std::move(codes));
}

SemanticIdsConfig config_of(const SearchBenchmarkOptions& o) {
  SemanticIdsConfig config;
  config.dim = o.heads * o.head_dim;
  config.layers = o.layers, config.heads = o.heads, config.head_dim = o.head_dim;
  config.dropout = 0;
  config.beam = o.beam;
  config.history = o.tokens / o.levels;
  return config;
}

Batch random_batch(const SearchBenchmarkOptions& o, const SemanticIds& model, const Context& context) {
  RandomStream random{2};
  const std::int64_t events = o.tokens / o.levels;
  Samples samples;
  samples.count = o.users;
  samples.history_offsets.push_back(0);
  for (std::int64_t i = 0; i < o.items; ++i) samples.items.push_back(i);
  for (std::int64_t u = 0; u < o.users; ++u) {
    for (std::int64_t e = 0; e < events; ++e)
      samples.history_item.push_back(
          static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(o.items))));
    samples.history_offsets.push_back(std::ssize(samples.history_item));
    samples.candidate_item.push_back(0);
    samples.user.push_back(u), samples.position.push_back(u * (events + 1));
  }
  samples.history_action.assign(samples.history_item.size(), 0);
  samples.history_time.assign(samples.history_item.size(), 1);
  samples.candidate_time.assign(samples.user.size(), 2), samples.label.assign(samples.user.size(), 1);
  LayoutScratch scratch;
  Batch batch;
  model.layout().lay_out(samples, scratch, batch);
  batch.copy_to(context);
  return batch;
}

// After three rounds that are not timed: a search begins to replay in its second.
template <typename Work>
Json times(std::int64_t rounds, const Context& context, const Work& work) {
  std::vector<double> ms;
  for (std::int64_t round = -3; round < rounds; ++round) {
    context.stream.synchronize();
    const Clock::time_point begin = Clock::now();
    work();
    if (round >= 0) ms.push_back(1000 * seconds_since(begin));
  }
  return {{"median_ms", median(ms)},
          {"min_ms", *std::min_element(ms.begin(), ms.end())},
          {"max_ms", *std::max_element(ms.begin(), ms.end())}};
}

Json levels_of(const SearchBenchmarkOptions& o, const Context& context, CodeSearch& search,
               const Batch& batch, const Variable& rows) {
  std::vector<std::vector<double>> ms(static_cast<std::size_t>(o.levels));
  times(o.rounds, context, [&] {
    search.begin(batch, rows);
    search.finish();
    const std::vector<double> once = search.level_ms();
    for (std::size_t l = 0; l < ms.size(); ++l) ms[l].push_back(once[l]);
  });
  Json levels = Json::array();
  for (const std::vector<double>& of_level : ms) levels.push_back(median(of_level));
  return levels;
}

// Means over rounds of each operation's time, of the histories and of all beams.
Json operations_of(const SearchBenchmarkOptions& o, Context context, const SemanticIds& model,
                   const Batch& batch, const Variable& rows) {
  StageTimer timer(context.stream);
  context.trace = &timer;
  CodeSearch search(model, context, {});
  Json sums = Json::object();
  for (std::int64_t round = -1; round < o.rounds; ++round) {
    timer.restart();
    search.begin(batch, rows);
    search.finish();
    const std::vector<StageTime> ranges = timer.take();
    if (round < 0) continue;  // converts weights
    std::vector<bool> has_inner(ranges.size());
    for (const StageTime& range : ranges)
      if (range.outer >= 0) has_inner[static_cast<std::size_t>(range.outer)] = true;
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      if (has_inner[i]) continue;
      std::vector<std::string_view> names;  // from the inside
      std::size_t section = i;
      for (; ranges[section].outer >= 0; section = static_cast<std::size_t>(ranges[section].outer))
        names.push_back(ranges[section].name);
      std::reverse(names.begin(), names.end());
      const std::string name = fmt::format("{}", fmt::join(names, "."));
      Json& sum = sums[std::string(ranges[section].name)][name];
      sum = (sum.is_null() ? 0.0 : sum.get<double>()) + ranges[i].ms() / static_cast<double>(o.rounds);
    }
  }
  return sums;
}

}  // namespace

Json benchmark_search(const SearchBenchmarkOptions& o) {
  if (o.tokens < o.levels) fail_usage("--tokens {} is no item of {} codes", o.tokens, o.levels);
  const Device device = choose_device(o.device).device;
  const Context context = open_device(device);
  const bool half = o.precision == Precision::bf16 && !device.is_host();
  const DType type = half ? DType::bf16 : DType::f32;
  const SemanticIdsConfig config = config_of(o);
  const auto codes = random_codes(o);
  const auto trie = std::make_shared<const CodeTrie>(*codes);
  SemanticIds model(config, codes, trie, 3);
  model.move_to(context, type);
  const Batch batch = random_batch(o, model, context);
  Tape tape(context, false);
  const Variable rows =
      ops::convert(tape, Variable::constant(random_rows(codes->rows(), config.dim, context)), type);

  Json json{{"device", to_string(device)},
            {"precision", half ? "bf16" : "fp32"},
            {"layers", o.layers},
            {"heads", o.heads},
            {"head_dim", o.head_dim},
            {"levels", o.levels},
            {"codes", o.codes},
            {"tuples", trie->tuples()},
            {"beam", o.beam},
            {"users", o.users},
            {"tokens", o.tokens / o.levels * o.levels},
            {"rounds", o.rounds}};
  const std::vector<Gpu> gpus = this_machine().nvidia.gpus;
  const auto index = static_cast<std::size_t>(device.index);
  if (!device.is_host() && index < gpus.size()) json["gpu"] = gpus[index].name;
  for (const bool replays : {true, false}) {
    CodeSearch search(model, context, {.replays = replays, .times = false});
    json[replays ? "search" : "launched"] = times(o.rounds, context, [&] {
      search.begin(batch, rows);
      search.finish();
    });
  }
  CodeSearch search(model, context, {.replays = true, .times = true});
  json["levels_ms"] = levels_of(o, context, search, batch, rows);
  json["operations_ms"] = operations_of(o, context, model, batch, rows);
  json["memory_mib"] = static_cast<double>(context.memory->figures().peak) / (1 << 20);
  return json;
}

}  // namespace hstu
