#include "hstu/dataset/dataset.h"

#include <algorithm>

#include "hstu/base/error.h"
#include "hstu/base/npy.h"
#include "hstu/base/text.h"
#include "hstu/dataset/open_column.h"

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

Dataset::Dataset(const Path& folder)
    : folder_(folder),
      manifest_(read_manifest(folder)),
      user_ids_(open_column<std::int64_t>(folder, manifest_, kUserIdsFile)),
      user_offsets_(open_column<std::int64_t>(folder, manifest_, kUserOffsetsFile)),
      item_(open_integers(folder, manifest_, kItemFile)),
      time_(open_integers(folder, manifest_, kTimestampFile)),
      action_(open_column<std::uint8_t>(folder, manifest_, kActionFile)),
      pool_counts_(open_pool_counts(folder, manifest_)) {
  for (const std::string& name : manifest_.context) {
    context_.push_back(open_integers(folder, manifest_, context_file(name)));
  }
  if (manifest_.columns.contains(kItemIdsFile))
    item_ids_.emplace(open_column<std::int64_t>(folder, manifest_, kItemIdsFile));
  attributes_.reserve(manifest_.attributes.size());
  for (const std::string& name : manifest_.attributes) {
    attributes_.emplace_back(open_integers(folder, manifest_, attribute_file(name)),
                             item_ids_ ? std::optional(item_ids_->values()) : std::nullopt);
  }
  const auto offsets = user_offsets();
  check(offsets.front() == 0 && offsets.back() == events() && std::is_sorted(offsets.begin(), offsets.end()),
        "{}: expected ascending offsets from 0 to {}", (folder / kUserOffsetsFile).string(), events());
  check(std::adjacent_find(user_ids().begin(), user_ids().end(), std::greater_equal<>()) == user_ids().end(),
        "{}: expected strictly ascending user ids", (folder / kUserIdsFile).string());
}

PoolCounts Dataset::pool_counts() const {
  const auto count = static_cast<std::size_t>(manifest_.columns.at(kPoolCountsFile).count);
  const auto elements = pool_counts_.bytes().last(count * sizeof(std::int64_t));
  return {std::span(reinterpret_cast<const std::int64_t*>(elements.data()), count),
          static_cast<std::int64_t>(manifest_.actions.size())};
}

const MappedColumn& Dataset::context(std::string_view name) const {
  return find_column(name, manifest_.context, context_, "context column");
}

const AttributeColumn& Dataset::attribute(std::string_view name) const {
  return find_column(name, manifest_.attributes, attributes_, "item attribute");
}

std::int64_t Dataset::user_at(std::int64_t position) const {
  const auto offsets = user_offsets();
  return std::upper_bound(offsets.begin(), offsets.end(), checked(position)) - offsets.begin() - 1;
}

Dataset::Events Dataset::events_before(std::int64_t user_id, std::int64_t time) const {
  const auto ids = user_ids();
  const auto user = std::lower_bound(ids.begin(), ids.end(), user_id);
  if (user == ids.end() || *user != user_id) return {};
  const auto offsets = user_offsets().subspan(static_cast<std::size_t>(user - ids.begin()), 2);
  const std::int64_t end = time_.visit([&](const auto* times) {
    return std::lower_bound(times + offsets[0], times + offsets[1], time) - times;
  });
  return {offsets[0], end};
}

void Dataset::refuse_position(std::int64_t position) const {
  fail(
      "{}: anchors: expected positions in [0, {}), found {}: an index was altered; remove the folder "
      "anchors, and the "
      "next run builds it again",
      folder_.string(), events(), position);
}

}  // namespace hstu
