// Item attributes: one value per item, gathered from rows of (item, value).
#pragma once

#include <vector>

#include "hstu/dataset/event_table.h"
#include "hstu/events/column_source.h"
#include "hstu/events/schema.h"

namespace hstu {

// Writes values at their items' ids, 4 bytes per id up to the largest. Rows overwrite earlier ones: the last
// value of an item in file order is kept. UsageError for item ids that are too large as indices: 2^31 or
// more, or beyond what `memory` bytes allow.
void assign_attribute(const IntegerColumn& items, const IntegerColumn& values, std::int64_t memory,
                      ItemAttribute& attribute);

// The schema's attributes, in order: those with a mapping file are read from it, the others are empty. A null
// value becomes 0, which means unmapped. Error for a negative value, UsageError for columns that are not
// integers; item ids as above.
std::vector<ItemAttribute> read_mappings(const Schema& schema, const Path& input, std::int64_t memory);

// Extends all attributes to the length of the longest one (added items are unmapped).
void equalize_lengths(std::vector<ItemAttribute>& attributes);

}  // namespace hstu
