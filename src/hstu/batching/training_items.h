// The items of a dataset's training part with the number of their positives.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hstu/batching/holdout.h"
#include "hstu/dataset/dataset.h"

namespace hstu {

// A positive is a rankable event with the dataset's label. Those that the hold-out does not leave to training
// are not read: no held-out event changes what is drawn. Alphabet: M items.
class TrainingItems {
 public:
  // One parallel pass over the events; 16 bytes for each item, and 8 for each positive if `by_day`. The
  // result does not depend on the number of threads. UsageError if the training part has no positive.
  TrainingItems(const Dataset& dataset, const Holdout& holdout, bool by_day);

  std::span<const std::int64_t> items() const { return items_; }  // (M) original ids, ascending
  std::int64_t positives() const { return ends_.back(); }
  // Positives of the item with this original id; 0 for an unknown one.
  std::int64_t positives_of(std::int64_t item) const;
  // The item of the positive with this number in [0, positives()), where those of an item are together.
  std::int64_t item_of(std::int64_t positive) const;

  // The positives of the day (UTC) of `time`, or of the latest earlier day that has some, else of the
  // earliest: numbers in [begin, end), of which day_item() has the items.
  struct Range {
    std::int64_t begin = 0, end = 0;
  };
  Range of_day(std::int64_t time) const;
  std::int64_t day_item(std::int64_t number) const;

 private:
  void count(const Dataset& dataset, const Holdout& holdout);
  void add_days(const Dataset& dataset, const Holdout& holdout);

  std::vector<std::int64_t> items_;
  std::vector<std::int64_t> ends_;  // (M) running sums of positives
  struct OfDay {
    std::int32_t day = 0;
    std::uint32_t item = 0;  // index into items_
    bool operator<(const OfDay& other) const {
      return day != other.day ? day < other.day : item < other.item;
    }
  };
  std::vector<OfDay> days_;  // of each positive, ascending
};

}  // namespace hstu
