// Item attributes: one value an item, gathered from rows of (item, value).
#pragma once

#include <vector>

#include "hstu/dataset/event_table.h"
#include "hstu/events/column_source.h"
#include "hstu/events/schema.h"

namespace hstu {

// Writes a batch's values at its items' ids. Rows overwrite earlier ones: of several values the last in file
// order stays. A null value becomes 0, which means unmapped. Error for a negative value, UsageError for item
// ids too large to index by (2^31 or more) or columns that are not integers.
void assign_attribute(const RawBatch& batch, const RawColumn& items, const RawColumn& values,
                      ItemAttribute& attribute);

// The schema's attributes, in order: those with a mapping file read from it, the others empty still.
std::vector<ItemAttribute> read_mappings(const Schema& schema, const Path& input);

// Makes all attributes as long as the longest one (items of shorter ones are unmapped).
void equalize_lengths(std::vector<ItemAttribute>& attributes);

}  // namespace hstu
