// The positives that a hold-out leaves to training.
#pragma once

#include <cstdint>

#include "hstu/batching/holdout.h"
#include "hstu/dataset/dataset.h"
#include "hstu/dataset/user_blocks.h"

namespace hstu {

// A positive is a rankable event with the dataset's label.
class Positives {
 public:
  explicit Positives(const Dataset& dataset)
      : action_(dataset.action().data()),
        wanted_(static_cast<std::uint8_t>(kRankableBit | dataset.manifest().label_bit())) {}
  bool contains(std::int64_t position) const { return (action_[position] & wanted_) == wanted_; }

 private:
  const std::uint8_t* action_;
  std::uint8_t wanted_;
};

// Calls body(position) for the positives of user `user` (its index) that train, in the order of time.
template <typename Body>
void each_training_positive(const Dataset& dataset, const Holdout& holdout, std::int64_t user,
                            const Body& body) {
  const Positives positives(dataset);
  const bool held_out = holdout.users.holds_out(dataset.user_ids()[static_cast<std::size_t>(user)]);
  if (held_out) return;
  dataset.events_of(user).each([&](std::int64_t p) {
    if (positives.contains(p) && holdout.trains(user, held_out, p, dataset.time()[p])) body(p);
  });
}

}  // namespace hstu
