// Where a step takes its batches from.
#pragma once

#include <functional>
#include <utility>

#include "hstu/batching/batch.h"

namespace hstu {

enum class Wait { no, yes };

// The parts of this rank of one global batch.
class PartSource {
 public:
  virtual ~PartSource() = default;
  // The next part, whose tensors are on the step's device; valid until the call after the next. Null after
  // the last.
  virtual const Batch* next() = 0;
  // The first part of the next step's global batch; null if there is none. Wait::no: null if it is not built
  // yet; it may be in host memory alone. Wait::yes: its tensors are on the step's device.
  virtual const Batch* later(Wait) { return nullptr; }
};

// A source that calls a function for each part, of a step after which none is prepared.
class PartsOf : public PartSource {
 public:
  explicit PartsOf(std::function<const Batch*()> next) : next_(std::move(next)) {}
  const Batch* next() override { return next_(); }

 private:
  std::function<const Batch*()> next_;
};

}  // namespace hstu
