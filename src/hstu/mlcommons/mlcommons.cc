#include "hstu/mlcommons/mlcommons.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "hstu/base/checksum.h"
#include "hstu/base/error.h"
#include "hstu/base/npy.h"
#include "hstu/base/progress.h"
#include "hstu/base/terminal.h"
#include "hstu/dataset/anchor_index.h"
#include "hstu/dataset/column_writer.h"
#include "hstu/dataset/mapped_column.h"
#include "hstu/dataset/pool_counts.h"
#include "hstu/dataset/writer.h"
#include "hstu/events/builtin_schemas.h"
#include "hstu/events/item_attributes.h"
#include "hstu/events/prepare_options.h"
#include "hstu/mlcommons/mlcommons_cache.h"

namespace hstu {
namespace {

constexpr std::int64_t kBlock = std::int64_t{1} << 20;      // events between two writes
constexpr std::int64_t kItemLimit = std::int64_t{1} << 31;  // counting takes one bit per id

// Reads a column once, for its checksum and range.
ColumnInfo describe_column(const Path& path) {
  const MappedColumn column(path);
  ColumnInfo info{.type = column.type(),
                  .count = column.size(),
                  .bytes = static_cast<std::int64_t>(std::filesystem::file_size(path)),
                  .checksum = {},
                  .min = {},
                  .max = {}};
  Checksum checksum;
  Progress progress("reading " + path.filename().string(), column.size(), "elements");
  column.visit([&](const auto* elements) {
    for (std::int64_t begin = 0; begin < column.size(); begin += kBlock) {
      const auto* const first = elements + begin;
      const auto* const end = elements + std::min(begin + kBlock, column.size());
      checksum.add(first, static_cast<std::size_t>(end - first) * sizeof(*first));
      const auto [low, high] = std::minmax_element(first, end);
      const std::int64_t min{*low}, max{*high};
      info.min = std::min(info.min.value_or(min), min);
      info.max = std::max(info.max.value_or(max), max);
      progress.advance_to(begin);
    }
  });
  info.checksum = checksum.text();
  return info;
}

// The three flags of an event in one byte; a listen is listen_plus or skip for any ratio, so these are the
// events to rank. Also counts the events.
void write_actions(const MlcommonsCache& cache, const Path& folder, Manifest& manifest) {
  const std::array names{"flat_is_listen_plus.npy", "flat_is_like.npy", "flat_is_skip.npy"};
  std::vector<MappedColumn> flags;
  flags.reserve(names.size());
  for (const char* name : names) flags.emplace_back(cache.file(name));
  const auto flag = [&](std::size_t f) {
    return flags[f].visit([](const auto* bytes) { return reinterpret_cast<const std::uint8_t*>(bytes); });
  };
  const std::uint8_t *const plus = flag(0), *const like = flag(1), *const skip = flag(2);
  ColumnWriter writer(folder / kActionFile, IntegerColumn::Width::k1Byte);
  PoolCountsWriter pools(folder, manifest.actions);
  std::vector<std::uint8_t> block;
  Progress progress("writing actions", cache.events(), "events");
  for (std::int64_t begin = 0; begin < cache.events(); begin += kBlock) {
    const std::int64_t end = std::min(begin + kBlock, cache.events());
    block.clear();
    for (std::int64_t p = begin; p < end; ++p) {
      check(plus[p] <= 1 && like[p] <= 1 && skip[p] <= 1 && plus[p] + skip[p] <= 1,
            "{}: event {}: expected flags of 0 or 1, at most one of listen_plus and skip, found listen_plus "
            "{}, like "
            "{}, skip {}",
            cache.folder().string(), p, plus[p], like[p], skip[p]);
      const bool listen = plus[p] != 0 || skip[p] != 0;
      block.push_back(static_cast<std::uint8_t>(plus[p] * kListenPlus + like[p] * kLike + skip[p] * kSkip +
                                                (listen ? kRankableBit : 0)));
      manifest.counts.rankable += listen ? 1 : 0;
      manifest.counts.positives += plus[p];
    }
    writer.append(std::span<const std::uint8_t>(block));
    pools.append(block);
    progress.advance_to(end);
  }
  manifest.columns[kActionFile] = writer.close();
  manifest.columns[kPoolCountsFile] = pools.close();
  progress.finish();
}

std::int64_t count_items(const Path& path, const ColumnInfo& info) {
  check(info.min >= 0 && info.max < kItemLimit, "{}: expected item ids in [0, 2^31), found {} to {}",
        path.string(), *info.min, *info.max);
  const MappedColumn item(path);
  std::vector<bool> seen(static_cast<std::size_t>(*info.max) + 1);
  item.visit([&](const auto* ids) {
    for (std::int64_t p = 0; p < item.size(); ++p) seen[static_cast<std::size_t>(ids[p])] = true;
  });
  return std::count(seen.begin(), seen.end(), true);
}

std::vector<ItemAttribute> attributes_of(const Path& metadata) {
  return read_mappings(yambda_schema(find_yambda_mappings(metadata), {}), metadata,
                       PrepareOptions{}.attribute());
}

// A catalogue of other item ids would give attributes to no item, in silence.
void check_catalogue(const Path& metadata, const Dataset& dataset) {
  const MappedColumn& item = dataset.item();
  for (const std::string& name : dataset.manifest().attributes) {
    const AttributeColumn& values = dataset.attribute(name);
    std::int64_t p = 0;
    while (p < item.size() && values.of(item[p]) == 0) ++p;
    if (p < item.size()) continue;
    fail("{}: {}_item_mapping.parquet has no {} for any item of the cache: it belongs to another catalogue",
         find_yambda_mappings(metadata).string(), name.substr(0, name.find('_')), name);
  }
}

// The cache lists anchors in ascending order; so does every window of the index.
void compare_anchors(const MlcommonsCache& cache, const Dataset& dataset, const AnchorRule& rule) {
  const AnchorIndex index = open_anchor_index(dataset, rule);
  const NpyColumn<std::int64_t> positions(cache.positions_file());
  std::optional<NpyColumn<std::int64_t>> times;
  if (cache.has_anchor_times()) times.emplace(cache.anchor_times_file());
  check(positions.size() == index.count(), "{}: expected {} anchors of min_history {}, found {}",
        cache.positions_file().string(), index.count(), cache.min_history(), positions.size());
  std::vector<std::size_t> next(static_cast<std::size_t>(index.windows()));
  for (std::int64_t i = 0; i < positions.size(); ++i) {
    check(positions[i] >= 0 && positions[i] < dataset.events(), "{}: anchor {}: there is no event {}",
          cache.positions_file().string(), i, positions[i]);
    const std::int64_t time = dataset.time()[positions[i]];
    check(!times || (*times)[i] == time, "{}: anchor {}: second {} is not the time of event {}",
          cache.anchor_times_file().string(), i, times ? (*times)[i] : 0, positions[i]);
    check(time >= index.time_min && time <= index.time_max, "{}: anchor {}: event {} at second {} is none",
          cache.positions_file().string(), i, positions[i], time);
    const std::int64_t w = index.window_of(time);
    const auto window = index.training_users.window(w);
    std::size_t& place = next[static_cast<std::size_t>(w)];
    check(place < window.size() && window[place] == positions[i],
          "{}: anchor {}: position {} at second {} contradicts the events", cache.positions_file().string(),
          i, positions[i], time);
    ++place;
  }
}

}  // namespace

Manifest import_mlcommons(const Path& folder, const Path& metadata, const Path& output) {
  const MlcommonsCache cache(folder);
  StagedFolder staged(output);
  const Path& path = staged.path();
  Manifest manifest = describe(yambda_schema(find_yambda_mappings(metadata), {.test_days = 0}));
  const auto link = [&](const std::string& file, const char* target) {
    std::filesystem::create_symlink(cache.file(target), path / file);
    manifest.columns[file] = describe_column(path / file);
  };
  write_npy(path / kUserOffsetsFile, cache.user_offsets());
  manifest.columns[kUserOffsetsFile] = describe_column(path / kUserOffsetsFile);
  link(kUserIdsFile, "unique_uids.npy");
  link(kItemFile, "flat_item_ids.npy");
  link(kTimestampFile, "flat_timestamps.npy");
  link(context_file("is_organic"), "flat_is_organic.npy");
  write_actions(cache, path, manifest);
  write_attributes(path, attributes_of(metadata), manifest);

  manifest.counts.events = cache.events();
  manifest.counts.users = manifest.columns.at(kUserIdsFile).count;
  manifest.counts.items = count_items(path / kItemFile, manifest.columns.at(kItemFile));
  manifest.time = {*manifest.columns.at(kTimestampFile).min, *manifest.columns.at(kTimestampFile).max};
  manifest.id = dataset_id(manifest.columns);
  write_file(path / kManifestFile, manifest_to_json(manifest));
  check_catalogue(metadata, Dataset(path));
  if (!cache.has_anchor_times()) {
    print_note(
        "note: {} has no anchor_ts_L<history length>.npy, which the reference writes when it first trains "
        "from the "
        "cache: the anchors are compared by their positions alone\n",
        folder.string());
  }
  compare_anchors(cache, Dataset(path),
                  {.min_history = cache.min_history(), .window_seconds = 86'400, .users = {}});
  staged.commit();
  return manifest;
}

}  // namespace hstu
