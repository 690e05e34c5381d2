// The candidate of a sample: what a model may know of the event that it ranks, and where its history ends.
#pragma once

#include <cstdint>
#include <span>

#include "hstu/dataset/dataset.h"
#include "hstu/dataset/user_events.h"

namespace hstu {

struct Candidate {
  // Of an anchor its position in the dataset; of a request, which is no event, a number of the caller's.
  std::int64_t name = 0;
  bool is_anchor = true;
  std::int64_t user = 0, item = 0;  // original ids
  std::int64_t time = 0;            // seconds
  float label = 0;                  // of an anchor, 0 or 1
  // An anchor with another item than its event's, and without any label.
  bool is_negative = false;
  UserEvents before = {};  // the user's events from which the history is selected
  // Of a request: its events, where they are in no dataset. `before` are their places.
  const EventColumns* events = nullptr;
  // Of a request: its values of the dataset's context columns, in the manifest's order. An anchor's are in
  // the columns.
  std::span<const std::int64_t> context = {};
  // Further items, which share the history and do not see each other: of a request those to be scored, of an
  // anchor its negatives. Only where no contextual feature is made of the item.
  std::span<const std::int64_t> others = {};
  // Of a request: so many of the first events of its history are neither in `before` nor in the sample, as
  // their keys are known (ops/history_keys.h).
  std::int64_t known = 0;
};

}  // namespace hstu
