#include "hstu/benchmark/data_benchmark.h"

#include <algorithm>
#include <string>
#include <vector>

#include "hstu/base/clock.h"
#include "hstu/batching/anchors.h"
#include "hstu/batching/sample_builder.h"
#include "hstu/batching/schedule.h"
#include "hstu/device/machine.h"

namespace hstu {
namespace {

std::vector<ContextualFeature> features_of(const Manifest& manifest) {
  std::vector<ContextualFeature> features{{"user", {"user"}, 0, false},
                                          {"user_x_hour", {"user", "hour"}, 24'000'000},
                                          {"item_x_hour", {"item", "hour"}, 40'000'000}};
  for (const std::string& attribute : manifest.attributes)
    features.push_back({"user_x_" + attribute, {"user", attribute}, 100'000'000});
  for (const std::string& column : manifest.context)
    features.push_back({"user_x_" + column, {"user", column}, 2'000'000});
  if (!manifest.attributes.empty()) {
    const std::string& first = manifest.attributes.front();
    features.push_back({first + "_x_hour", {first, "hour"}, 32'000'000});
    features.push_back({"user_x_" + first + "_x_hour", {"user", first, "hour"}, 40'000'000});
  }
  return features;
}

DataOptions data_options(const DataBenchmarkOptions& options) {
  const Manifest manifest = read_manifest(options.dataset);
  DataOptions data;
  data.history_length = options.history;
  data.min_history = options.history;
  data.attributes = manifest.attributes;
  data.contextual = features_of(manifest);
  return data;
}

ScheduleOptions order_from_the_middle(const DataBenchmarkOptions& options, std::int64_t windows) {
  return {.batch_size = options.batch_size, .drop_last = false, .epochs = 0, .first_window = windows / 2};
}

// The time from nothing to the first batch. The anchor index exists already.
double open_seconds(const DataBenchmarkOptions& options, const DataOptions& data) {
  const Clock::time_point start = Clock::now();
  const Dataset dataset(options.dataset);
  const Anchors anchors = find_anchors(dataset, data, {});
  BatchSchedule schedule(anchors.training, order_from_the_middle(options, anchors.training.windows()));
  const Samples first = SampleBuilder(dataset, data).build(schedule.next()->positions);
  return first.count > 0 ? seconds_since(start) : 0;
}

}  // namespace

Json benchmark_data(const DataBenchmarkOptions& options) {
  const DataOptions data = data_options(options);
  const Dataset dataset(options.dataset);
  const Clock::time_point start = Clock::now();
  const Anchors anchors = find_anchors(dataset, data, {});
  const double index_s = seconds_since(start);
  const double open_s = open_seconds(options, data);

  const SampleBuilder builder(dataset, data);
  SampleScratch scratch = builder.scratch();
  BatchSchedule schedule(anchors.training, order_from_the_middle(options, anchors.training.windows()));
  Samples gathered;
  builder.build(schedule.next()->positions, gathered, scratch);  // its buffers have grown from here on
  std::int64_t samples = 0, tokens = 0, items = 0, batches = 0;
  const Clock::time_point begin = Clock::now();
  for (; samples < options.samples; ++batches) {
    builder.build(schedule.next()->positions, gathered, scratch);
    samples += gathered.count;
    tokens += gathered.history_offsets.back();
    items += static_cast<std::int64_t>(gathered.items.size());
  }
  const double seconds = seconds_since(begin);
  return {{"program", "hstu"},
          {"events", dataset.events()},
          {"anchors", anchors.count},
          {"index_s", index_s},
          {"open_ms", 1000 * open_s},
          {"samples", samples},
          {"samples_per_s", static_cast<double>(samples) / seconds},
          {"tokens_per_sample", static_cast<double>(tokens) / static_cast<double>(samples)},
          {"items_per_batch", items / batches},
          {"peak_rss_mib", peak_rss_mib()}};
}

}  // namespace hstu
