// Tally: predictions of global batches, collected over parts and ranks, from which an objective computes its
// metrics.
#pragma once

#include <cstdint>
#include <string>

#include "hstu/batching/batch.h"
#include "hstu/comm/communicator.h"
#include "hstu/device/stream.h"
#include "hstu/tensor/tensor.h"

namespace hstu {

class Tally {
 public:
  virtual ~Tally() = default;

  // Takes a part of the current global batch: the model's outputs, which `compute` computes, and copies of
  // the columns that say what they are, because the memory of a batch is used again.
  virtual void add(const Batch& batch, const Tensor& outputs, const Stream& compute) = 0;
  // Ends the global batch: waits on `stream` for its outputs, then adds its examples in the order of one
  // rank, those of all ranks on each of them. All ranks call it, also without a part. Returns which output is
  // not finite, the same text on all ranks, and adds nothing then; "" if all are.
  [[nodiscard]] virtual std::string settle(const Stream& stream, Communicator& comm) = 0;

  virtual std::int64_t examples() const = 0;  // of the global batches so far
};

}  // namespace hstu
