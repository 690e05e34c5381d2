#include "hstu/rows/not_finite_row.h"

#include "hstu/base/finite.h"

namespace hstu {

std::optional<NotFiniteRow> first_not_finite(std::span<const Tensor> rows, const Context& context) {
  if (!context.device().is_host()) return cuda::first_not_finite(rows, context);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].defined()) continue;
    const std::int64_t place = first_not_finite(rows[i].data<float>(), rows[i].size());
    if (place < rows[i].size()) return NotFiniteRow{i, place / rows[i].cols()};
  }
  return std::nullopt;
}

}  // namespace hstu
