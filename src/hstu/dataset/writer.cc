#include "hstu/dataset/writer.h"

#include <utility>

#include "hstu/base/error.h"

namespace hstu {

using ColumnWidth = IntegerColumn::Width;

UserBorders::UserBorders(const Path& folder, std::int64_t first)
    : ids_(folder / kUserIdsFile, ColumnWidth::k8Bytes),
      offsets_(folder / kUserOffsetsFile, ColumnWidth::k8Bytes),
      position_(first) {}

void UserBorders::append(const IntegerColumn& users) {
  std::vector<std::int64_t> ids, offsets;
  users.visit([&](const auto& values) {
    for (const auto value : values) {
      const auto user = static_cast<std::int64_t>(value);
      if (user != last_) {
        require(!last_ || user > *last_, "expected ascending users, found {} after {}", user, *last_);
        ids.push_back(user);
        offsets.push_back(position_);
        last_ = user;
      }
      ++position_;
    }
  });
  ids_.append(ids);
  offsets_.append(offsets);
}

void UserBorders::close(std::map<std::string, ColumnInfo>& columns) {
  offsets_.append(std::span<const std::int64_t>(&position_, 1));
  columns[kUserIdsFile] = ids_.close();
  columns[kUserOffsetsFile] = offsets_.close();
}

DatasetWriter::DatasetWriter(Path folder, Manifest description, std::int64_t memory)
    : folder_(std::move(folder)),
      manifest_(std::move(description)),
      users_(folder_),
      item_(folder_ / kItemFile, ColumnWidth::k4Bytes),
      time_(folder_ / kTimestampFile, ColumnWidth::k4Bytes),
      action_(folder_ / kActionFile, ColumnWidth::k1Byte),
      pools_(folder_, manifest_.actions),
      counter_(manifest_.label_bit(), folder_ / "items.spill", memory) {
  for (const std::string& name : manifest_.context) {
    context_.emplace_back(folder_ / context_file(name), ColumnWidth::k1Byte);
  }
  if (manifest_.weighted) weight_.emplace(folder_ / kWeightFile);
}

void DatasetWriter::append(EventTable events) {
  const std::size_t columns = context_.size() + (weight_ ? 1 : 0);
  require(events.context.size() == columns, "expected {} context columns, found {}", columns,
          events.context.size());
  users_.append(events.user);
  item_.append(events.item);
  time_.append(events.time);
  action_.append(events.action);
  pools_.append(events.action);
  for (std::size_t c = 0; c < context_.size(); ++c) context_[c].append(events.context[c]);
  if (weight_) weight_->append(events.context.back());
  counter_.add(events);
  if (manifest_.times == Times::kSeconds) ties_.add(events);
}

void write_item_ids(const Path& folder, std::span<const std::int64_t> items, Manifest& manifest) {
  ColumnWriter writer(folder / kItemIdsFile, ColumnWidth::k8Bytes);
  writer.append(items);
  manifest.columns[kItemIdsFile] = writer.close();
}

void write_attributes(const Path& folder, std::span<const ItemAttribute> attributes, Manifest& manifest) {
  manifest.attributes.clear();
  for (const ItemAttribute& attribute : attributes) {
    ColumnWriter writer(folder / attribute_file(attribute.name), ColumnWidth::k4Bytes);
    writer.append(attribute.values);
    manifest.columns[attribute_file(attribute.name)] = writer.close();
    manifest.attributes.push_back(attribute.name);
  }
}

Manifest DatasetWriter::finish(std::span<const ItemAttribute> attributes,
                               const std::optional<TimeSplit>& split,
                               const std::optional<EventCounts>& test_events,
                               const std::function<void(Manifest&)>& complete) {
  Manifest manifest = manifest_;
  users_.close(manifest.columns);
  manifest.columns[kItemFile] = item_.close();
  manifest.columns[kTimestampFile] = time_.close();
  manifest.columns[kActionFile] = action_.close();
  manifest.columns[kPoolCountsFile] = pools_.close();
  for (std::size_t c = 0; c < context_.size(); ++c) {
    manifest.columns[context_file(manifest.context[c])] = context_[c].close();
  }
  if (weight_) manifest.columns[kWeightFile] = weight_->close();
  write_attributes(folder_, attributes, manifest);
  const ColumnInfo& time = manifest.columns.at(kTimestampFile);
  manifest.time = {.min = time.min.value_or(0), .max = time.max.value_or(0)};
  manifest.counts = counter_.counts();
  if (manifest.times == Times::kSeconds) {
    const std::optional<std::int64_t> seed = manifest.ties ? manifest.ties->seed : std::nullopt;
    manifest.ties = ties_.ties();
    manifest.ties->seed = seed;
  }
  manifest.split = split;
  manifest.test_events = test_events;
  if (complete) complete(manifest);
  manifest.id = dataset_id(manifest.columns, manifest.extends);
  write_file(folder_ / kManifestFile, manifest_to_json(manifest));
  return manifest;
}

std::int64_t dataset_bytes(const Manifest& manifest) {
  std::int64_t bytes = 0;
  for (const auto& [file, column] : manifest.columns) bytes += column.bytes;
  return bytes;
}

}  // namespace hstu
