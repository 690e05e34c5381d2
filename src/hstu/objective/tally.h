// Tally: predictions of global batches, collected over parts and shared by ranks, from which an objective
// computes its metrics.
#pragma once

#include <cstdint>
#include <string>

#include "hstu/batching/batch.h"
#include "hstu/comm/communicator.h"
#include "hstu/comm/first_text.h"
#include "hstu/device/stream.h"
#include "hstu/tensor/tensor.h"

namespace hstu {

class Tally {
 public:
  virtual ~Tally() = default;

  // Before the first batch: of steps whose metrics need the latest `examples` alone and sums over all. What
  // ranks share then does not grow with the steps.
  virtual void keep_latest(std::int64_t /*examples*/) {}

  // Takes a part of the current global batch: the model's outputs, which `compute` computes, and copies of
  // the columns that say what they are, because the memory of a batch is used again.
  virtual void add(const Batch& batch, const Tensor& outputs, const Stream& compute) = 0;
  // Ends the global batch: waits on `stream` for its outputs, then takes this rank's examples. Returns which
  // output of this rank is not finite, and takes nothing of the batch then; "" if all are.
  [[nodiscard]] virtual std::string collect(const Stream& stream) = 0;
  // Gives every rank the examples of all ranks, of the batches collected since the last call, in the order of
  // batches and in each in the order of one rank. All ranks call it together, after the same batches.
  virtual void share(Communicator& comm) = 0;

  // Both at once, after each batch of an evaluation. Returns which output is not finite, the same text on all
  // ranks, and adds nothing of the batch then; "" if all are.
  [[nodiscard]] virtual std::string settle(const Stream& stream, Communicator& comm) {
    std::string bad = first_text(collect(stream), comm);
    if (bad.empty()) share(comm);
    return bad;
  }

  // Of the global batches that are shared, and this rank's of those that are not.
  virtual std::int64_t examples() const = 0;
};

}  // namespace hstu
