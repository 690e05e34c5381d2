// Rows of one table, and their updates, from and to host memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hstu/embedding/table.h"
#include "hstu/tensor/tensor.h"

namespace hstu::testing_embedding {

// (n, width())
inline std::vector<float> rows_of(const EmbeddingTable& table, const Handles& selected) {
  const Tensor rows = table.gather(selected).to_host(table.context().stream);
  return {rows.data<float>(), rows.data<float>() + rows.size()};
}

// Updates selected rows by gradients (n, width()).
inline void update_rows(EmbeddingTable& table, const Handles& selected, const float* gradients,
                        double learning_rate, std::int64_t step = 0) {
  const std::int64_t n = selected.ids.size();
  const std::vector<float> values(gradients, gradients + n * table.width());
  table.update(selected, Tensor::from<float>({n, table.width()}, values).copy(table.context()),
               {.learning_rate = learning_rate, .step = step});
}

// One update of the rows of `ids`, created where they do not exist.
inline void apply_gradients(EmbeddingTable& table, std::span<const std::int64_t> ids, const float* gradients,
                            double learning_rate, std::int64_t step = 0) {
  update_rows(table, table.select(ids, RowAccess::train), gradients, learning_rate, step);
}

}  // namespace hstu::testing_embedding
