// The memory of a step that is not made, pass_parts() of step.h without kernels, and of an evaluation's
// batch.
#pragma once

#include <cstdint>
#include <vector>

#include "hstu/batching/batch.h"
#include "hstu/device/dry_memory_pool.h"
#include "hstu/model/model.h"
#include "hstu/objective/objective.h"

namespace hstu {

// The largest number of bytes that the passes of a step of `parts` parts have in memory at a time, on
// `device`: looked-up rows, activations, their gradients, workspaces, and what is kept of each part until the
// update: its outputs, and the gradients of its rows. Each part is `batch`. Parameters, their gradients and
// the batch are not among them. The model and the batch are on the host. `items`: of the objective's
// catalogues (TaskData::catalogue), which one rank has. `tensor`: ranks that share the model's heads, which
// is divided among them; the others have as many tokens. `groups`: with a context group whose ranks call it
// together; null: none.
std::int64_t step_memory(const Model& model, const Objective& objective, const Batch& batch,
                         const DryDevice& device, std::int64_t parts = 1,
                         const std::vector<std::int64_t>& items = {}, AttentionChoice attention = {},
                         int tensor = 1, const Groups* groups = nullptr);

// The same of outputs_of() (step/outputs.h): the forward pass of an evaluation, with its looked-up rows.
std::int64_t outputs_memory(const Model& model, const Batch& batch, const DryDevice& device,
                            AttentionChoice attention = {});

}  // namespace hstu
