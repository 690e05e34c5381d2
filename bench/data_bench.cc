// The data path at the reference's sizes: opening a dataset, gathering histories, assembling batches.
//   ./dev bench --benchmark_filter=data
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>

#include <benchmark/benchmark.h>
#include <unistd.h>

#include "hstu/base/random.h"
#include "hstu/batching/anchors.h"
#include "hstu/batching/batch_builder.h"
#include "hstu/batching/schedule.h"
#include "hstu/dataset/pool_counts.h"

namespace hstu {
namespace {

constexpr std::int64_t kWindow = 86'400;
constexpr std::int64_t kMinHistory = 4086;
constexpr std::int64_t kBatch = 1024;

template <typename T>
ColumnInfo write_column(const Path& folder, const std::string& file, const std::vector<T>& values) {
  write_npy(folder / file, values);
  const auto [min, max] = std::minmax_element(values.begin(), values.end());
  return {.type = npy_type<T>(),
          .count = static_cast<std::int64_t>(values.size()),
          .bytes = static_cast<std::int64_t>(std::filesystem::file_size(folder / file)),
          .checksum = std::to_string(values.size()),
          .min = static_cast<std::int64_t>(*min),
          .max = static_cast<std::int64_t>(*max)};
}

// Yambda's shape: 61.3 % listened through, 35.9 % skipped, 1.9 % likes, 0.9 % other; 300 days; listening in
// sessions; users of 1,000 to 27,738 events; 200,000 items, the frequent ones more than the rest.
class GeneratedDataset {
 public:
  explicit GeneratedDataset(std::int64_t events)
      : folder_(std::filesystem::temp_directory_path() /
                fmt::format("hstu_bench_{}_{}", events, ::getpid())) {
    std::filesystem::create_directories(folder_);
    RandomStream random{.key = 1, .index = 0};
    std::vector<std::int64_t> user_ids, offsets{0};
    std::vector<std::uint32_t> item, time;
    std::vector<std::uint8_t> action, organic;
    while (offsets.back() < events) {
      const double u = random.uniform();
      const std::int64_t count =
          std::min<std::int64_t>(27'738, 1'000 + static_cast<std::int64_t>(-5'000 * std::log(1 - u)));
      user_ids.push_back(static_cast<std::int64_t>(user_ids.size()) * 3 + 1);
      std::uint64_t now = random.below(5 * kWindow);
      const auto taste = static_cast<std::uint64_t>(random.below(200'000));
      const std::uint64_t pace = 2 * 295 * kWindow / static_cast<std::uint64_t>(count);
      for (std::int64_t i = 0; i < count; ++i) {
        now += i % 20 == 0 ? random.below(20 * (pace > 200 ? pace - 200 : 1)) : random.below(400);
        time.push_back(static_cast<std::uint32_t>(std::min<std::uint64_t>(now, 300 * kWindow) / 5 * 5));
        const double popularity = random.uniform();
        const auto rank = static_cast<std::uint64_t>(200'000 * popularity * popularity * popularity);
        item.push_back(
            static_cast<std::uint32_t>((random.below(2) != 0 ? taste + rank % 2'000 : rank) % 200'000 * 46));
        const double kind = random.uniform();
        action.push_back(kind < 0.613 ? 0x81 : kind < 0.972 ? 0x84 : kind < 0.991 ? 2 : 0);
        organic.push_back(static_cast<std::uint8_t>(random.below(2)));
      }
      offsets.push_back(static_cast<std::int64_t>(item.size()));
    }
    Manifest manifest;
    manifest.name = "bench";
    manifest.actions = {{"listen_plus", 1}, {"like", 2}, {"skip", 4}};
    manifest.label = "listen_plus";
    manifest.pools = {"listen_plus", "like", "skip"};
    manifest.context = {"is_organic"};
    manifest.attributes = {"artist_id", "album_id"};
    manifest.counts = {.events = offsets.back(),
                       .users = static_cast<std::int64_t>(user_ids.size()),
                       .items = 200'000,
                       .rankable = offsets.back(),
                       .positives = offsets.back()};
    manifest.time = {.min = 0, .max = 300 * kWindow};
    std::vector<std::uint32_t> attribute(9'200'000);
    for (std::size_t i = 0; i < attribute.size(); ++i) attribute[i] = static_cast<std::uint32_t>(i / 7);
    auto& columns = manifest.columns;
    columns[kUserIdsFile] = write_column(folder_, kUserIdsFile, user_ids);
    columns[kUserOffsetsFile] = write_column(folder_, kUserOffsetsFile, offsets);
    columns[kItemFile] = write_column(folder_, kItemFile, item);
    columns[kTimestampFile] = write_column(folder_, kTimestampFile, time);
    columns[kActionFile] = write_column(folder_, kActionFile, action);
    columns[context_file("is_organic")] = write_column(folder_, context_file("is_organic"), organic);
    columns[attribute_file("artist_id")] = write_column(folder_, attribute_file("artist_id"), attribute);
    columns[attribute_file("album_id")] = write_column(folder_, attribute_file("album_id"), attribute);
    columns[kPoolCountsFile] = write_pool_counts(folder_, manifest.actions);
    manifest.id = dataset_id(columns);
    write_file(folder_ / kManifestFile, manifest_to_json(manifest));
  }
  ~GeneratedDataset() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  const Path& folder() const { return folder_; }

 private:
  Path folder_;
};

const Path& generated(std::int64_t events) {
  static std::map<std::int64_t, std::unique_ptr<GeneratedDataset>> made;
  auto& dataset = made[events];
  if (!dataset) dataset = std::make_unique<GeneratedDataset>(events);
  return dataset->folder();
}

// The reference's configuration: 4,086 events of three pools, eight contextual features, two attributes.
DataOptions reference_options() {
  DataOptions options;
  options.history_length = 4086;
  options.max_sequence = 4096;
  options.min_history = kMinHistory;
  options.attributes = {"artist_id", "album_id"};
  options.contextual = {{"uid", {"user"}, 0, false},
                        {"user_x_artist", {"user", "artist_id"}, 100'000'000, true},
                        {"user_x_album", {"user", "album_id"}, 40'000'000, true},
                        {"user_x_hour", {"user", "hour"}, 24'000'000, true},
                        {"item_x_hour", {"item", "hour"}, 40'000'000, true},
                        {"artist_x_hour", {"artist_id", "hour"}, 32'000'000, true},
                        {"user_x_is_organic", {"user", "is_organic"}, 2'000'000, true},
                        {"user_x_artist_x_hour", {"user", "artist_id", "hour"}, 40'000'000, true}};
  return options;
}

// Opening, choosing the held-out window, the first batch of 1,024 samples.
void data_open(benchmark::State& state) {
  const Path& folder = generated(state.range(0));
  const DataOptions options = reference_options();
  find_anchors(Dataset(folder), options, {.windows = 1});  // the index is there
  for (auto _ : state) {
    const Dataset dataset(folder);
    const Anchors anchors = find_anchors(dataset, options, {.windows = 1});
    BatchSchedule schedule(anchors.training, {.batch_size = kBatch});
    benchmark::DoNotOptimize(BatchBuilder(dataset, options).build(schedule.next()->positions).items.size());
  }
}

// Samples per second of one core; range(0): events, range(1): percent of the window that is shuffled.
void data_assemble(benchmark::State& state) {
  const Dataset dataset(generated(state.range(0)));
  const DataOptions options = reference_options();
  const Anchors anchors = find_anchors(dataset, options, {.windows = 1});
  const double shuffle = static_cast<double>(state.range(1)) / 100;
  BatchSchedule schedule(anchors.training, {.batch_size = kBatch,
                                            .drop_last = true,
                                            .epochs = 0,
                                            .first_window = 150,
                                            .shuffle_fraction = shuffle});
  const BatchBuilder builder(dataset, options);
  BatchScratch scratch = builder.scratch();
  Batch batch;
  std::int64_t samples = 0, tokens = 0, items = 0;
  for (auto _ : state) {
    builder.build(schedule.next()->positions, batch, scratch);
    samples += batch.samples;
    tokens += batch.history_offsets.back();
    items += static_cast<std::int64_t>(batch.items.size());
  }
  state.SetItemsProcessed(samples);
  state.counters["tokens_per_sample"] = static_cast<double>(tokens) / static_cast<double>(samples);
  state.counters["distinct_items"] = static_cast<double>(items) / static_cast<double>(state.iterations());
}

// The gather alone.
void data_gather(benchmark::State& state) {
  const Dataset dataset(generated(state.range(0)));
  const DataOptions options = reference_options();
  const Anchors anchors = find_anchors(dataset, options, {.windows = 1});
  const auto positions = anchors.training.window(200);
  BatchScratch scratch = BatchBuilder(dataset, options).scratch();
  std::size_t next = 0;
  for (auto _ : state) {
    const std::int64_t p = positions[next++ % positions.size()];
    const std::int64_t user = dataset.user_offsets()[static_cast<std::size_t>(dataset.user_at(p))];
    benchmark::DoNotOptimize(scratch.gatherer.gather(user, p).data());
  }
  state.SetItemsProcessed(state.iterations());
}

BENCHMARK(data_open)->Arg(2'000'000)->Arg(20'000'000)->Unit(benchmark::kMillisecond);
BENCHMARK(data_gather)->Arg(20'000'000)->Unit(benchmark::kMicrosecond);
BENCHMARK(data_assemble)->Args({20'000'000, 0})->Args({20'000'000, 100})->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace hstu
