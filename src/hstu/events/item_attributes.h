// Item attributes: one value an item, gathered from rows of (item, value).
#pragma once

#include <vector>

#include "hstu/dataset/event_table.h"
#include "hstu/events/column_source.h"
#include "hstu/events/schema.h"

namespace hstu {

// Writes values at their items' ids, 4 bytes an id up to the largest. Rows overwrite earlier ones: of several
// values the last in file order stays. UsageError for item ids too large to index by: 2^31 or more, or beyond
// what `memory` bytes hold.
void assign_attribute(const IntegerColumn& items, const IntegerColumn& values, std::int64_t memory,
                      ItemAttribute& attribute);

// The schema's attributes, in order: those with a mapping file read from it, the others empty still. A null
// value becomes 0, which means unmapped. Error for a negative value, UsageError for columns that are not
// integers; item ids as above.
std::vector<ItemAttribute> read_mappings(const Schema& schema, const Path& input, std::int64_t memory);

// Makes all attributes as long as the longest one (items of shorter ones are unmapped).
void equalize_lengths(std::vector<ItemAttribute>& attributes);

}  // namespace hstu
