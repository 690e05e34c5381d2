// Writes a dataset folder: NumPy columns, user-major and chronological, and the manifest last.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "hstu/base/files.h"
#include "hstu/dataset/column_writer.h"
#include "hstu/dataset/event_counter.h"
#include "hstu/dataset/event_table.h"
#include "hstu/dataset/manifest.h"
#include "hstu/dataset/pool_counts.h"

namespace hstu {

// Finds the borders between users in events that come user by user, and writes user_ids.npy and
// user_offsets.npy.
class UserBorders {
 public:
  // `first` is the position of the first event.
  explicit UserBorders(const Path& folder, std::int64_t first = 0);
  // The users of the next events, one an event; ascending over all calls.
  void append(const IntegerColumn& users);
  // Describes both files in `columns`.
  void close(std::map<std::string, ColumnInfo>& columns);

 private:
  ColumnWriter ids_, offsets_;
  std::int64_t position_;
  std::optional<std::int64_t> last_;
};

// A column for each attribute, named and described in `manifest`.
void write_attributes(const Path& folder, std::span<const ItemAttribute> attributes, Manifest& manifest);

// Writes events as they come, in order of (user, time), into the existing folder `folder` (a StagedFolder's,
// so that a failure leaves nothing behind). Memory does not depend on the number of events. Throws Error
// naming the file that could not be written.
class DatasetWriter : public EventSink {
 public:
  // `description` says what the bits and columns mean (name, actions, label, pools, context); counts, time,
  // attributes, columns and id are filled in. Different items are counted within `memory` bytes.
  DatasetWriter(Path folder, Manifest description, std::int64_t memory = std::int64_t{64} << 20);
  void append(EventTable events) override;
  std::int64_t events() const { return action_.count(); }
  // Writes the attributes and, last of all, the manifest, which it returns. `split` and `test_events` go into
  // it as they are. There must have been events.
  Manifest finish(std::span<const ItemAttribute> attributes, const std::optional<TimeSplit>& split = {},
                  const std::optional<EventCounts>& test_events = {});

 private:
  Path folder_;
  Manifest manifest_;
  UserBorders users_;
  ColumnWriter item_, time_, action_;
  PoolCountsWriter pools_;
  std::vector<ColumnWriter> context_;
  EventCounter counter_;
};

// Size of all columns, bytes.
std::int64_t dataset_bytes(const Manifest& manifest);

}  // namespace hstu
