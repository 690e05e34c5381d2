#include "hstu/dataset/dataset.h"

#include <algorithm>

#include "hstu/base/error.h"
#include "hstu/base/npy.h"
#include "hstu/base/text.h"

namespace hstu {
namespace {

// Counts by block and action: the only file with two dimensions.
MappedFile open_pool_counts(const Path& folder, const Manifest& manifest) {
  const Path path = column_file(folder, manifest, kPoolCountsFile);
  MappedFile file(path);
  const NpyHeader header = parse_npy_header(file.bytes(), path);
  expect_fit(path, manifest.columns.at(kPoolCountsFile), npy_type<std::int64_t>(), header.count());
  const std::vector<std::int64_t> shape{manifest.counts.events / kPoolBlock + 1,
                                        static_cast<std::int64_t>(manifest.actions.size())};
  check(header.type == npy_type<std::int64_t>() && header.shape == shape,
        "{}: expected {} counts of the shape ({}), found {} of ({})", path.string(), npy_type<std::int64_t>(),
        fmt::join(shape, ", "), header.type, fmt::join(header.shape, ", "));
  return file;
}

std::vector<Segment> open_segments(const std::vector<SegmentFolder>& folders) {
  const std::vector<std::int64_t> first = segment_positions(folders);
  std::vector<Segment> segments;
  for (std::size_t s = 0; s < folders.size(); ++s) segments.emplace_back(folders[s], first[s]);
  return segments;
}

const std::uint8_t* bytes_of(const MappedColumn& column, const Path& folder) {
  check(column.type() == npy_type<std::uint8_t>(), "{}: expected elements of type {}, found {}",
        (folder / kActionFile).string(), npy_type<std::uint8_t>(), column.type());
  const std::uint8_t* bytes = nullptr;
  column.visit([&](const auto* elements) { bytes = reinterpret_cast<const std::uint8_t*>(elements); });
  return bytes;
}

template <typename Column>
const Column& find_column(std::string_view name, const std::vector<std::string>& names,
                          const std::vector<Column>& columns, std::string_view kind) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) {
    fail_usage("the dataset has no {} \"{}\"{}", kind, name,
               names.empty() ? std::string("; it has none") : suggestion(name, names));
  }
  return columns[static_cast<std::size_t>(found - names.begin())];
}

}  // namespace

Dataset::Dataset(const Path& folder) : Dataset(folder, read_segments(folder)) {}

Dataset::Dataset(const Path& folder, std::vector<SegmentFolder> segments)
    : folder_(folder),
      folders_(std::move(segments)),
      manifest_(manifest_of(folders_)),
      segments_(open_segments(folders_)),
      item_(open(kItemFile)),
      time_(open(kTimestampFile)),
      action_column_(open(kActionFile)),
      action_(bytes_of(action_column_, folder)),
      users_(segments_, time_) {
  for (const SegmentFolder& segment : folders_) {
    pool_counts_.push_back(open_pool_counts(segment.folder, segment.manifest));
    if (segment.manifest.columns.contains(kItemIdsFile))
      item_ids_.push_back(open_column<std::int64_t>(segment.folder, segment.manifest, kItemIdsFile));
  }
  if (manifest_.weighted) weight_ = open(kWeightFile, open_weights);
  for (const std::string& name : manifest_.context) context_.push_back(open(context_file(name)));
  attributes_.reserve(manifest_.attributes.size());
  for (const std::string& name : manifest_.attributes) {
    std::vector<AttributeColumn::Part> parts;
    for (std::size_t s = 0; s < folders_.size(); ++s) {
      parts.push_back({open_integers(folders_[s].folder, folders_[s].manifest, attribute_file(name)),
                       item_ids_.empty() ? std::nullopt : std::optional(item_ids_[s].values())});
    }
    attributes_.emplace_back(std::move(parts));
  }
}

Dataset::Dataset(const Dataset& schema, InMemory)
    : folder_(schema.folder_),
      manifest_(schema.manifest_),
      item_(std::span<const std::int64_t>()),
      time_(item_),
      action_column_(std::span<const std::uint8_t>()),
      action_(nullptr),
      users_(segments_, time_),
      context_(schema.context_.size(), item_),
      attributes_(schema.attributes_) {}

void Dataset::show(const EventColumns& events) {
  require(segments_.empty() && events.context.size() == context_.size() &&
              events.time.size() == events.item.size() && events.action.size() == events.item.size(),
          "expected columns for a dataset in memory with {} context columns", context_.size());
  item_ = MappedColumn(events.item);
  time_ = MappedColumn(events.time);
  action_column_ = MappedColumn(events.action);
  action_ = events.action.data();
  for (std::size_t c = 0; c < context_.size(); ++c) context_[c] = MappedColumn(events.context[c]);
}

// A column of all segments.
MappedColumn Dataset::open(const std::string& file, OpenColumn opened) const {
  if (folders_.size() == 1) return opened(folder_, folders_.front().manifest, file);
  std::vector<MappedColumn> parts;
  std::vector<std::int64_t> first;
  for (std::size_t s = 0; s < folders_.size(); ++s) {
    parts.push_back(opened(folders_[s].folder, folders_[s].manifest, file));
    first.push_back(segments_[s].first());
  }
  return {parts, first, segments_.back().end()};
}

std::vector<PoolCounts> Dataset::pool_counts() const {
  std::vector<PoolCounts> counts;
  for (std::size_t s = 0; s < segments_.size(); ++s) {
    const auto count = static_cast<std::size_t>(folders_[s].manifest.columns.at(kPoolCountsFile).count);
    const auto elements = pool_counts_[s].bytes().last(count * sizeof(std::int64_t));
    counts.emplace_back(std::span(reinterpret_cast<const std::int64_t*>(elements.data()), count),
                        static_cast<std::int64_t>(manifest_.actions.size()), segments_[s].first());
  }
  return counts;
}

const MappedColumn& Dataset::context(std::string_view name) const {
  return find_column(name, manifest_.context, context_, "context column");
}

const AttributeColumn& Dataset::attribute(std::string_view name) const {
  return find_column(name, manifest_.attributes, attributes_, "item attribute");
}

UserEvents Dataset::events_before(std::int64_t user, std::int64_t position) const {
  const UserEvents all = events_of(user);
  for (std::size_t r = all.ranges(); r-- > 0;)
    if (all.range(r).contains(position)) return all.first_ranges(r, position);
  fail("{}: event {} is not of user {}", folder_.string(), position, user);
}

UserEvents Dataset::events_before_time(std::int64_t user_id, std::int64_t time) const {
  const auto ids = user_ids();
  const auto user = std::lower_bound(ids.begin(), ids.end(), user_id);
  if (user == ids.end() || *user != user_id) return {};
  const UserEvents all = events_of(user - ids.begin());
  std::size_t r = all.ranges() - 1;
  while (r > 0 && time_[all.range(r).begin] >= time) --r;
  const PositionRange range = all.range(r);
  const std::int64_t end = time_.visit([&](const auto* times) {
    return std::lower_bound(times + range.begin, times + range.end, time) - times;
  });
  return all.first_ranges(r, end);
}

std::int64_t Dataset::end_of_user_in_segment(std::int64_t position) const {
  const Segment& segment = segments_[users_.segment_at(position)];
  return segment.events_of(segment.user_at(position)).end;
}

void Dataset::refuse_position(std::int64_t position) const {
  fail(
      "{}: anchors: expected positions in [0, {}), found {}: an index was altered; remove the folder "
      "anchors, and the "
      "next run builds it again",
      folder_.string(), end(), position);
}

}  // namespace hstu
