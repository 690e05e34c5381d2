#include "hstu/dataset/writer.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "hstu/base/checksum.h"
#include "hstu/base/error.h"
#include "hstu/base/npy.h"
#include "hstu/base/progress.h"
#include "hstu/base/text.h"
#include "hstu/base/threads.h"
#include "hstu/dataset/pool_counts.h"
#include "hstu/dataset/user_order.h"

namespace hstu {
namespace {

constexpr std::int64_t kBlock = std::int64_t{1} << 20;  // elements gathered between two writes
constexpr std::int64_t kGrain = std::int64_t{1} << 16;  // elements gathered by one thread at a time

class ColumnWriter {
 public:
  ColumnWriter(const Path& folder, std::map<std::string, ColumnInfo>& columns)
      : folder_(folder), columns_(columns) {}

  // values[rows[p]] for every p, or the values as they stand when `rows` is empty.
  template <typename T>
  void write(const std::string& file, const std::vector<T>& values, std::span<const std::int64_t> rows = {}) {
    NpyWriter<T> writer(folder_ / file);
    Checksum checksum;
    const auto append = [&](std::span<const T> block) {
      writer.append(block);
      checksum.add(block.data(), block.size_bytes());
    };
    if (rows.empty()) {
      append(values);
    } else {
      write_gathered(append, values, rows);
    }
    writer.close();
    ColumnInfo info{.type = npy_type<T>(),
                    .count = writer.count(),
                    .bytes = static_cast<std::int64_t>(std::filesystem::file_size(folder_ / file)),
                    .checksum = checksum.text(),
                    .min = {},
                    .max = {}};
    if (!values.empty()) {
      const auto [smallest, largest] = std::minmax_element(values.begin(), values.end());
      info.min = static_cast<std::int64_t>(*smallest);
      info.max = static_cast<std::int64_t>(*largest);
    }
    columns_[file] = info;
  }

  void write(const std::string& file, const IntegerColumn& column, std::span<const std::int64_t> rows = {}) {
    column.visit([&](const auto& values) { write(file, values, rows); });
  }

 private:
  template <typename T, typename Append>
  static void write_gathered(const Append& append, const std::vector<T>& values,
                             std::span<const std::int64_t> rows) {
    std::vector<T> gathered;
    for (std::size_t start = 0; start < rows.size(); start += kBlock) {
      const auto block = rows.subspan(start, std::min<std::size_t>(kBlock, rows.size() - start));
      gathered.resize(block.size());
      parallel_blocks(
          static_cast<std::int64_t>(block.size()), kGrain, [&](std::int64_t begin, std::int64_t end) {
            for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
              gathered[i] = values[static_cast<std::size_t>(block[i])];
            }
          });
      append(gathered);
    }
  }

  const Path& folder_;
  std::map<std::string, ColumnInfo>& columns_;
};

}  // namespace

Manifest write_dataset(const Path& folder, Manifest description, const EventTable& events,
                       std::span<const ItemAttribute> attributes) {
  require(events.context.size() == description.context.size(), "expected {} context columns, found {}",
          description.context.size(), events.context.size());
  Manifest manifest = std::move(description);
  manifest.counts = count_events(events, manifest.label_bit());
  manifest.time = time_range(events);
  manifest.attributes.clear();
  manifest.columns.clear();

  const UserOrder order = order_by_user_and_time(events);
  const auto columns = static_cast<std::int64_t>(6 + events.context.size() + attributes.size());
  Progress progress("writing", columns, "columns");
  ColumnWriter writer(folder, manifest.columns);
  const auto advance = [&] { progress.advance_to(static_cast<std::int64_t>(manifest.columns.size())); };

  writer.write(kUserIdsFile, order.user_ids);
  writer.write(kUserOffsetsFile, order.offsets);
  writer.write(kItemFile, events.item, order.rows);
  advance();
  writer.write(kTimestampFile, events.time, order.rows);
  advance();
  writer.write(kActionFile, events.action, order.rows);
  advance();
  manifest.columns[kPoolCountsFile] = write_pool_counts(folder, manifest.actions);
  advance();
  for (std::size_t c = 0; c < events.context.size(); ++c) {
    writer.write(context_file(manifest.context[c]), events.context[c], order.rows);
    advance();
  }
  for (const ItemAttribute& attribute : attributes) {
    IntegerColumn narrow(IntegerColumn::Width::k4Bytes);
    narrow.append(attribute.values);
    writer.write(attribute_file(attribute.name), narrow);
    manifest.attributes.push_back(attribute.name);
    advance();
  }
  manifest.id = dataset_id(manifest.columns);
  write_file(folder / kManifestFile, manifest_to_json(manifest));
  progress.finish(human_bytes(static_cast<double>(dataset_bytes(manifest))));
  return manifest;
}

std::int64_t dataset_bytes(const Manifest& manifest) {
  std::int64_t bytes = 0;
  for (const auto& [file, column] : manifest.columns) bytes += column.bytes;
  return bytes;
}

}  // namespace hstu
