// The histories of a batch of requests as a dataset in memory.
#pragma once

#include <cstdint>
#include <vector>

#include "hstu/dataset/dataset.h"
#include "hstu/score/request.h"

namespace hstu {

class RequestHistories {
 public:
  // `schema`: of the model, which must outlive it.
  explicit RequestHistories(const Dataset& schema)
      : context_(schema.manifest().context.size()), dataset_(Dataset::in_memory(schema)) {}

  // The dataset of the batch; another one for the next batch, at the same address.
  const Dataset& dataset() const { return dataset_; }

  void clear();
  // Appends the events of a request that are before `time`, in the order of time.
  UserEvents add(const RequestEvents& events, std::int64_t time);
  // The last `most` events of `from` that are before `time`.
  UserEvents add(const Dataset& from, std::int64_t user, std::int64_t time, std::int64_t most);
  // Shows what was added since clear() in the dataset.
  void show();

 private:
  UserEvents since(std::int64_t begin) const { return PositionRange{begin, std::ssize(item_)}; }

  std::vector<std::int64_t> item_, time_;
  std::vector<std::uint8_t> action_;
  std::vector<std::vector<std::int64_t>> context_;
  Dataset dataset_;
};

}  // namespace hstu
