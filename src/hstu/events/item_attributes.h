// Item attributes: one value per item, gathered from rows of (item, value).
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "hstu/columns/column_source.h"
#include "hstu/columns/raw_values.h"
#include "hstu/columns/text_codes.h"
#include "hstu/dataset/event_table.h"
#include "hstu/events/dictionaries.h"
#include "hstu/events/event_extractor.h"
#include "hstu/events/schema.h"

namespace hstu {

// The attributes of a schema. Values are stored at their items' ids, 4 bytes per id up to the largest, or, if
// ids are hashes of texts, at the items' numbers in a table. Texts become codes of a vocabulary.
class ItemAttributes {
 public:
  // `hashed`: item ids are hashes of texts. Each attribute, and the table of items, may take `memory` bytes.
  // Texts of `known` keep their codes.
  ItemAttributes(const Schema& schema, bool hashed, std::int64_t memory, Dictionaries known = {});

  // Reads the attributes that have a mapping file, relative to `input`: the last row of an item is kept. A
  // null value becomes 0, which means unmapped. Error for a negative value; UsageError for columns of other
  // types than the log's, and for item ids that are too large as indices: 2^31 or more, or beyond the memory.
  void read_mappings(const Path& input);
  // Takes the attributes that the log itself contains from its events before `end` (seconds; absent: from
  // all). The latest event of an item is kept, and of several at that time the last in the log.
  void see(const LogChunk& chunk, std::optional<std::int64_t> end);

  // Call one of the following at the end: all attributes, equally long (added items are unmapped). With
  // `hashed` they are in the order of `items`, which ascend.
  struct Result {
    std::vector<ItemAttribute> attributes;  // of the schema, in its order
    std::vector<std::int64_t> items;        // with `hashed` alone
    std::vector<std::optional<std::vector<std::string>>>
        names;                         // of codes 1, 2, ...; absent: values are integers
    std::vector<std::string> remarks;  // warnings about mapping files
  };
  Result take();

 private:
  void read_mapping(const AttributeRule& rule, const Path& file, std::size_t attribute);
  std::vector<std::int64_t> rows_of(const IntegerColumn& items);
  std::vector<std::int64_t> values_of(std::size_t attribute, const IntegerColumn& values,
                                      const CodedTexts& texts);
  void reach(std::int64_t row, ItemAttribute& attribute) const;
  void sort_items(Result& result) const;

  const Schema& schema_;
  bool hashed_;
  std::int64_t memory_;
  Dictionaries known_;
  std::vector<ItemAttribute> attributes_;
  std::vector<std::optional<Vocabulary>> vocabularies_;  // of each attribute, if its values are texts
  std::unordered_map<std::int64_t, std::int64_t> rows_;  // with hashed_: of item ids
  std::vector<std::string> remarks_;
  std::vector<std::int64_t> latest_;  // [row] time of the event that the log's values are from
};

// The attributes of a schema whose attributes all have mapping files and whose item ids are integers.
std::vector<ItemAttribute> read_mappings(const Schema& schema, const Path& input, std::int64_t memory);

}  // namespace hstu
