// Writes a dataset folder: NumPy columns, user-major and chronological, and the manifest last.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "hstu/base/files.h"
#include "hstu/dataset/column_writer.h"
#include "hstu/dataset/event_counter.h"
#include "hstu/dataset/event_table.h"
#include "hstu/dataset/manifest.h"
#include "hstu/dataset/pool_counts.h"
#include "hstu/dataset/tie_counter.h"
#include "hstu/dataset/weight_column.h"

namespace hstu {

// Finds the bounds of users in events that arrive user by user, and writes user_ids.npy and user_offsets.npy.
class UserBorders {
 public:
  // `first` is the position of the first event.
  explicit UserBorders(const Path& folder, std::int64_t first = 0);
  // The users of the next events, one per event; ascending over all calls.
  void append(const IntegerColumn& users);
  // Describes both files in `columns`.
  void close(std::map<std::string, ColumnInfo>& columns);

 private:
  ColumnWriter ids_, offsets_;
  std::int64_t position_;
  std::optional<std::int64_t> last_;
};

// Describes item_ids.npy, whose order the attributes' elements have. `items` ascend.
void write_item_ids(const Path& folder, std::span<const std::int64_t> items, Manifest& manifest);

// A column for each attribute, named and described in `manifest`.
void write_attributes(const Path& folder, std::span<const ItemAttribute> attributes, Manifest& manifest);

// Writes events, which arrive in order of (user, time), into the existing folder `folder` (use that of a
// StagedFolder, which is removed after a failure). Memory does not depend on the number of events. Throws
// Error naming the file that could not be written.
class DatasetWriter : public EventSink {
 public:
  // `description` defines the bits and columns (name, times, actions, label, pools, context, weighted); the
  // writer adds counts, ties, time, attributes, columns and id. Distinct items are counted within `memory`
  // bytes.
  DatasetWriter(Path folder, Manifest description, std::int64_t memory = std::int64_t{64} << 20);
  void append(EventTable events) override;
  std::int64_t events() const { return action_.count(); }
  // For files that the caller writes into the folder and describes before finish().
  const Path& folder() const { return folder_; }
  Manifest& manifest() { return manifest_; }
  // Writes the attributes and finally the manifest, which it returns. `split` and `test_events` are copied
  // into the manifest. `complete`, if any, may add to the manifest when all other columns are written. A
  // dataset without events, which only describes columns, has a time of 0 to 0.
  Manifest finish(std::span<const ItemAttribute> attributes, const std::optional<TimeSplit>& split = {},
                  const std::optional<EventCounts>& test_events = {},
                  const std::function<void(Manifest&)>& complete = {});

 private:
  Path folder_;
  Manifest manifest_;
  UserBorders users_;
  ColumnWriter item_, time_, action_;
  PoolCountsWriter pools_;
  std::vector<ColumnWriter> context_;
  std::optional<WeightWriter> weight_;
  EventCounter counter_;
  TieCounter ties_;
};

// Total size of all columns, in bytes.
std::int64_t dataset_bytes(const Manifest& manifest);

}  // namespace hstu
