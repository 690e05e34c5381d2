#include "hstu/plan/dry_step.h"

#include <memory>
#include <vector>

#include "hstu/step/launches.h"

namespace hstu {

// In the order of begin_step(), which decides what is alive at a time.
std::int64_t step_memory(const Model& model, const Objective& objective, const Batch& batch,
                         const DryDevice& device) {
  const Context context{.stream = Stream(),
                        .memory = std::make_shared<DryMemoryPool>(device, has_few_tokens(batch))};
  std::vector<Variable> rows;
  for (const FeatureSpec& feature : model.features()) {
    const Shape shape{batch.host_tensor(ids_column(feature.name)).size(), model.embedding_dim()};
    rows.emplace_back(Tensor::empty(shape, DType::f32, context));
  }
  Tape tape(context);
  const Variable outputs = model.forward(tape, batch, rows, Draws(0, 0));
  const Variable loss = objective.loss(tape, outputs, batch);
  tape.backward(loss);
  return context.memory->figures().peak;
}

}  // namespace hstu
