#include "hstu/step/outputs.h"

#include "hstu/step/launches.h"
#include "hstu/tensor/tape.h"

namespace hstu {

Tensor outputs_of(Learner& learner, const Batch& batch) {
  const BatchRows rows = look_up(learner, batch, RowAccess::read);
  learner.compute.stream.wait(rows.ready);
  Tape tape(learner.compute, false);
  Variable outputs;
  with_launches_of(learner, &batch,
                   [&] { outputs = learner.model->forward(tape, batch, rows.leaves, Draws()); });
  return outputs.value();
}

}  // namespace hstu
