#include "hstu/events/event_weights.h"

#include <limits>

#include "hstu/base/error.h"
#include "hstu/dataset/weight_column.h"

namespace hstu {
namespace {

double value_at(const RawColumn& column, std::size_t row) {
  return column.kind == RawColumn::Kind::kReal ? column.reals[row]
                                               : static_cast<double>(column.integers[row]);
}

void check_numbers(const RawBatch& batch, const RawColumn& column) {
  if (column.kind == RawColumn::Kind::kReal || column.kind == RawColumn::Kind::kInteger) return;
  fail_usage("{}: column \"{}\": expected numbers for the weight, found {}", batch.file, column.name,
             column.type_name);
}

[[noreturn]] void refuse(const RawBatch& batch, const RawColumn* column, std::size_t row, double weight) {
  if (column == nullptr)
    fail("{}: the weights of an event's actions multiply to {}: expected {}", batch.file, weight,
         kWeightRange);
  const double own = value_at(*column, row);
  fail("{}: expected {} for the weight{}, found {}", place_of(batch, *column, static_cast<std::int64_t>(row)),
       kWeightRange, is_weight(own) ? ", times those of the event's actions" : "",
       is_weight(own) ? weight : own);
}

}  // namespace

bool is_weight(double value) {
  return value == 0 ||
         (value >= std::numeric_limits<float>::min() && value <= std::numeric_limits<float>::max());
}

std::vector<std::int64_t> event_weights(const Schema& schema, const RawBatch& batch, const RawColumn* column,
                                        std::span<const std::uint8_t> actions) {
  if (column != nullptr) check_numbers(batch, *column);
  std::vector<std::int64_t> bits;
  bits.reserve(actions.size());
  for (std::size_t r = 0; r < actions.size(); ++r) {
    const double own = column == nullptr ? 1 : value_at(*column, r);
    double weight = own;
    for (const ActionRule& rule : schema.actions)
      if ((actions[r] & rule.bit) != 0) weight *= rule.weight;
    if (!is_weight(own) || !is_weight(weight)) refuse(batch, column, r, weight);
    bits.push_back(weight_bits(weight == 0 ? 0.0f : static_cast<float>(weight)));  // -0 is 0
  }
  return bits;
}

}  // namespace hstu
