// Semantic ids: each item of a catalogue has a tuple of codes, one for each level. A level has code numbers
// of its own, counted from 0; models number the codes of all levels one after another (ItemCodes::row).
// Several items may have the same tuple.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hstu/base/json.h"

namespace hstu {

struct ItemCodes {
  std::vector<std::int64_t> sizes;  // (L) codes of each level
  std::vector<std::int64_t> items;  // (V) ids, ascending, each once
  std::vector<std::int32_t> codes;  // (V, L), those of level l in [0, sizes[l])
  // codes_checksum() before each time that items were appended to the folder, the first one first.
  std::vector<std::string> earlier = {};

  std::int64_t levels() const { return std::ssize(sizes); }
  std::int64_t size() const { return std::ssize(items); }
  std::span<const std::int32_t> tuple(std::int64_t item) const {
    return std::span(codes).subspan(static_cast<std::size_t>(item * levels()),
                                    static_cast<std::size_t>(levels()));
  }
  // The number of code 0 of a level among the codes of all levels: the sum of the sizes before it.
  std::int64_t first_row(std::int64_t level) const;
  std::int64_t rows() const { return first_row(levels()); }  // codes of all levels
  // The index of an item; none: it has no codes.
  std::optional<std::int64_t> find(std::int64_t item) const;

  // Throws Error that begins with `source` unless all of the above is true. At most 16 levels and 2^24 codes,
  // which f32 counts exactly.
  void check_valid(const std::string& source) const;
};

// How the codes of a level are used, and how many items share their tuple with others.
struct CodeStatistics {
  struct Level {
    std::int64_t size = 0, used = 0;
    double perplexity = 0;  // exp of the entropy of the level's codes over the items
  };
  std::vector<Level> levels;
  std::int64_t items = 0, tuples = 0;  // tuples: different ones
  std::int64_t colliding = 0;          // items whose tuple another item has too
  std::int64_t largest_group = 0;      // items with one tuple, at most
};
CodeStatistics code_statistics(const ItemCodes& codes);
Json to_json(const CodeStatistics& statistics);

// The indices of the items by tuple, then by id. The order of everything that is looked up by tuple.
std::vector<std::int64_t> order_by_tuple(const ItemCodes& codes);

}  // namespace hstu
