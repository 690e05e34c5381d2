// The events of requests: those that count, and those of a batch as a dataset in memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "hstu/batching/event_lists.h"
#include "hstu/dataset/dataset.h"
#include "hstu/score/request.h"

namespace hstu {

// The events of a request that are before its time, oldest first; of equal times in the order of their rows.
class CountedEvents {
 public:
  // `columns`: context columns. Lists that are in the order of time are read in place: they must outlive it.
  void read(const RequestEvents& events, std::int64_t time, std::size_t columns);
  // The last `most` events of `from` that are before `time`.
  void read(const Dataset& from, std::int64_t user, std::int64_t time, std::int64_t most,
            std::size_t columns);

  // Valid until the next call of read(). A context column that the request does not have is empty.
  const EventColumns& columns() const { return columns_; }
  std::int64_t size() const { return std::ssize(columns_.item); }

 private:
  EventColumns columns_;
  EventLists copies_;
};

// A dataset in memory that has the events of a batch.
class EventMemory {
 public:
  // `schema`: of the model, which must outlive it.
  explicit EventMemory(const Dataset& schema) : dataset_(Dataset::in_memory(schema)) { clear(); }

  // The dataset of the batch; another one for the next batch, at the same address.
  const Dataset& dataset() const { return dataset_; }

  void clear() { events_.clear(dataset_.manifest().context.size()); }
  // Appends `events` from `begin` on.
  UserEvents add(const EventColumns& events, std::int64_t begin);
  // Shows what was added since clear() in the dataset.
  void show();

 private:
  EventLists events_;
  EventColumns columns_;
  Dataset dataset_;
};

}  // namespace hstu
