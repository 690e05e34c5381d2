// The weights of a log's events: the value of a column times the weights of the event's actions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hstu/columns/column_source.h"
#include "hstu/events/schema.h"

namespace hstu {

inline constexpr const char* kWeightRange = "0 or a number from 1.2e-38 to 3.4e38";
// Whether a number is in that range: fp32 has it, and not as 0 or infinity.
bool is_weight(double value);

// (R) weights of the batch's rows as bits (weight_bits). `column`: of the schema's weight; null: 1 for every
// row. `actions`: (R) their bits. UsageError for a column that has no numbers; Error naming file, column and
// row for a weight that is negative, infinite, NaN or outside of fp32.
std::vector<std::int64_t> event_weights(const Schema& schema, const RawBatch& batch, const RawColumn* column,
                                        std::span<const std::uint8_t> actions);

}  // namespace hstu
